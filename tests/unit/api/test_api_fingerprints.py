"""Fingerprints change with what decides an output, and with nothing else."""

from typing import Any

import pytest
from pretrain_api.fingerprints import (
    dataset_fingerprint,
    evaluation_fingerprint,
    export_fingerprint,
    model_fingerprint,
    tokenizer_fingerprint,
)
from pretrain_api.resolve import resolve
from pretrain_api.spec import PretrainJobSpec

SOURCES = [{"key": "s3://a/b.jsonl", "size": 10, "etag": "x"}]


def spec(**sections: Any) -> PretrainJobSpec:
    base = {"corpus": {"sources": [{"uri": "a.jsonl"}]}, "model": {"architecture": "bert"}}
    return resolve(PretrainJobSpec.model_validate({**base, **sections}))


def all_of(job: PretrainJobSpec) -> dict[str, str]:
    dataset = dataset_fingerprint(SOURCES, "tokenizer-sha", job)
    model = model_fingerprint(dataset, job)
    evaluation = evaluation_fingerprint(model, [], job)
    return {
        "tokenizer": tokenizer_fingerprint(SOURCES, job),
        "dataset": dataset,
        "model": model,
        "evaluation": evaluation,
        "export": export_fingerprint(model, evaluation, job),
    }


@pytest.mark.parametrize(
    ("sections", "changed"),
    [
        ({"preprocess": {"parallelism": 9}}, set()),
        ({"training": {"logging": {"intervalSteps": 1}}}, set()),
        ({"workers": {"image": "mine:1", "sharedMemory": "2Gi"}}, set()),
        ({"checkpoint": {"everySteps": 7}}, set()),
        ({"suspend": True}, set()),
        ({"export": {"dtype": "bfloat16"}}, {"export"}),
        ({"training": {"maxSteps": 7}}, {"model", "evaluation", "export"}),
        ({"workers": {"replicas": 2}}, {"model", "evaluation", "export"}),
        ({"workers": {"threadsPerProcess": 2}}, {"model", "evaluation", "export"}),
        (
            {"preprocess": {"packing": {"isolateDocuments": True}}},
            {"model", "evaluation", "export"},
        ),
        (
            {"corpus": {"sources": [{"uri": "a.jsonl", "textField": "body"}]}},
            {"tokenizer", "dataset", "model", "evaluation", "export"},
        ),
        (
            {"tokenizer": {"train": {"vocabSize": 100}}},
            {"tokenizer"},
        ),
    ],
)
def test_a_change_of_the_spec_reaches_what_it_decides(
    sections: dict[str, Any], changed: set[str]
) -> None:
    before, after = all_of(spec()), all_of(spec(**sections))
    assert {stage for stage in before if before[stage] != after[stage]} == changed


def test_a_tokenizer_that_is_loaded_does_not_depend_on_how_the_corpus_is_read() -> None:
    loaded = {"tokenizer": {"uri": "tokenizers/a"}}
    other = {"corpus": {"sources": [{"uri": "a.jsonl", "textField": "body"}]}}
    before, after = all_of(spec(**loaded)), all_of(spec(**loaded, **other))
    assert before["tokenizer"] == after["tokenizer"]


def test_sources_that_change_in_place_change_the_dataset() -> None:
    rewritten = [{**SOURCES[0], "etag": "y"}]
    job = spec()
    assert dataset_fingerprint(rewritten, "a", job) != dataset_fingerprint(SOURCES, "a", job)


def test_the_tokenizer_s_bytes_change_the_dataset() -> None:
    job = spec()
    assert dataset_fingerprint(SOURCES, "a", job) != dataset_fingerprint(SOURCES, "b", job)


def test_a_fingerprint_is_sixteen_digits_and_always_the_same() -> None:
    assert all_of(spec()) == all_of(spec())
    assert all(len(value) == 16 and int(value, 16) >= 0 for value in all_of(spec()).values())
