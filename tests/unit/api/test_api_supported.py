"""Whatever this version does not run is refused with a sentence, never ignored."""

from typing import Any

import pytest
from pretrain_api.resolve import resolve
from pretrain_api.rules import fragment
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.validation import unsupported
from pretrain_api.validation.supported import TABLE

SOURCE = {"uri": "a.jsonl", "weight": 1.0}
TASK = {"name": "a", "data": {"uri": "a.jsonl"}}

REFUSED: dict[str, Any] = {
    "managedBy": "kueue.x-k8s.io/multikueue",
    "corpus.dataset": {"uri": "datasets/a", "format": "megatron"},
    "corpus.sources.*.weight": {"sources": [SOURCE]},
    "corpus.validation.sources.*.weight": {"sources": [SOURCE]},
    "corpus.cleaning.languages": ["zh"],
    "corpus.cleaning.maxSymbolRatio": 0.0,
    "corpus.cleaning.maxRepetitionRatio": 0.0,
    "corpus.cleaning.exactDuplicates": "remove",
    "corpus.cleaning.nearDuplicates": "remove",
    "objective.mlm.masking": "static",
    "objective.mlm.duplicates": 10,
    "objective.mlm.nextSentence": True,
    "objective.spanCorruption": {},
    "objective.denoising": {},
    "preprocess.packing.strategy": "segmentPairs",
    "model.architecture": "t5",
    "model.initFrom": "s3://models/bert",
    "training.optimizer.name": "lamb",
    "training.schedule.type": "warmupStableDecay",
    "training.parallelism.tensor": 2,
    "training.parallelism.sequence": 2,
    "training.zero.offload.optimizer": True,
    "training.zero.offload.parameters": True,
    "training.compile": True,
    "training.logging.wandbProject": "pretraining",
    "training.hooks.dataset": "mine:dataset",
    "training.hooks.model": "mine:model",
    "training.hooks.collate": "mine:collate",
    "training.hooks.loss": "mine:loss",
    "evaluation.tasks.*.type": {"tasks": [{**TASK, "type": "questionAnswering"}]},
    "export.push": {"repo": "a/b", "tokenSecret": "hub"},
    "scheduling.queueName": "research",
    "scheduling.gang": "volcano",
}
"""A value that each field of the table is refused for; a list's whole section for items."""


def spec_with(path: str, value: Any) -> PretrainJobSpec:
    head, star, _ = path.partition(".*.")
    changed = fragment(head.rpartition(".")[0] if star else path, value)
    spec: dict[str, Any] = {
        "corpus": {"sources": [{"uri": "a.jsonl"}]},
        "model": {"architecture": "bert"},
    }
    for section, fields in changed.items():
        spec[section] = {**spec.get(section, {}), **fields} if isinstance(fields, dict) else fields
    return resolve(PretrainJobSpec.model_validate(spec))


def test_every_entry_of_the_table_is_tried_here() -> None:
    assert [entry.path for entry in TABLE] == [*REFUSED]


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.path)
def test_a_field_that_is_not_run_is_refused_by_its_path_and_sentence(entry: Any) -> None:
    problems = unsupported(spec_with(entry.path, REFUSED[entry.path]))
    path = tuple(0 if part == "*" else part for part in entry.path.split("."))
    messages = {problem.path: problem.message for problem in problems}
    assert messages[path].endswith(f" is not supported: {entry.sentence}")


def test_a_job_of_defaults_is_run() -> None:
    spec = spec_with("suspend", False)
    assert unsupported(spec) == []


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("corpus.cleaning.normalization", "NFKC"),
        ("corpus.cleaning.minCharacters", 5),
        ("corpus.validation.sources", [{"uri": "b.jsonl"}]),
        ("checkpoint.keepEverySteps", 100),
        ("checkpoint.everyMinutes", 10),
        ("training.zero", {"stage": 3}),
        ("preprocess.packing", {"isolateDocuments": True}),
    ],
)
def test_what_is_run_is_not_refused(path: str, value: Any) -> None:
    assert unsupported(spec_with(path, value)) == []


def test_a_sentence_says_what_was_asked_for() -> None:
    (problem,) = unsupported(spec_with("training.optimizer.name", "muon"))
    assert str(problem) == (
        "training.optimizer.name: muon is not supported: adamw is the one that runs"
    )


def test_every_item_of_a_list_is_looked_at() -> None:
    sources = [{"uri": "a.jsonl"}, SOURCE, SOURCE]
    problems = unsupported(spec_with("corpus.sources", sources))
    assert [problem.path[2] for problem in problems] == [1, 2]
