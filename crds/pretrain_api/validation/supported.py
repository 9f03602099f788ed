"""What the API has and this version does not run: a table, so that nothing is ignored silently.

A field leaves the table in the change that makes it work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pretrain_api.base import CONTROLLER
from pretrain_api.presets import ARCHITECTURES
from pretrain_api.problems import Path, Problem
from pretrain_api.spec import PretrainJobSpec

Predicate = Callable[[Any], bool]


def said(value: Any) -> bool:
    """Tell whether a field holds anything."""
    return value not in (None, "", [], {}, False)


def is_value(*values: Any) -> Predicate:
    """Make a predicate for one of some values."""
    return lambda value: value in values


def is_other_than(*values: Any) -> Predicate:
    """Make a predicate for a value that is set and none of these."""
    return lambda value: value is not None and value not in values


@dataclass(frozen=True)
class Unsupported:
    """A field (`*` stands for every item of a list), when it is refused, and the sentence."""

    path: str
    refused: Predicate
    sentence: str


RUNNING = tuple(name for name, architecture in ARCHITECTURES.items() if architecture.runs)

TABLE: tuple[Unsupported, ...] = (
    Unsupported(
        "managedBy",
        is_other_than(CONTROLLER),
        "another controller runs the job; it cannot be tried here",
    ),
    Unsupported(
        "corpus.dataset", said, "prepared datasets are not read yet; give raw text under sources"
    ),
    Unsupported(
        "corpus.sources.*.weight",
        said,
        "sources are not blended by weight yet; each is read once an epoch",
    ),
    Unsupported(
        "corpus.validation.sources.*.weight",
        said,
        "sources are not blended by weight yet; each is read once",
    ),
    Unsupported("corpus.cleaning.languages", said, "documents are not told apart by language yet"),
    Unsupported(
        "corpus.cleaning.maxSymbolRatio", is_other_than(), "there is no symbol-ratio filter yet"
    ),
    Unsupported(
        "corpus.cleaning.maxRepetitionRatio", is_other_than(), "there is no repetition filter yet"
    ),
    Unsupported(
        "corpus.cleaning.exactDuplicates",
        is_value("remove"),
        "equal documents are not removed yet; deduplicate the sources before",
    ),
    Unsupported(
        "corpus.cleaning.nearDuplicates",
        is_value("remove"),
        "similar documents are not removed yet; deduplicate the sources before",
    ),
    Unsupported(
        "objective.mlm.masking",
        is_value("static"),
        "masks are not fixed in the dataset yet; dynamic masks each sample anew in each epoch",
    ),
    Unsupported(
        "objective.mlm.duplicates",
        is_other_than(1),
        "belongs to static masking, which is not run yet; leave it at 1",
    ),
    Unsupported(
        "objective.mlm.nextSentence",
        is_value(True),
        "next-sentence prediction is not trained yet; set it to false",
    ),
    Unsupported("objective.spanCorruption", is_other_than(), "span corruption is not trained yet"),
    Unsupported("objective.denoising", is_other_than(), "denoising is not trained yet"),
    Unsupported(
        "preprocess.packing.strategy",
        is_value("segmentPairs"),
        "pairs of segments are not packed yet; use fullSentences",
    ),
    Unsupported(
        "model.architecture",
        is_other_than(*RUNNING),
        f"this version trains {', '.join(RUNNING)}",
    ),
    Unsupported(
        "model.initFrom",
        said,
        "training starts from random weights; continuing from a published model is not run yet",
    ),
    Unsupported("training.optimizer.name", is_other_than("adamw"), "adamw is the one that runs"),
    Unsupported(
        "training.schedule.type",
        is_value("warmupStableDecay"),
        "is not run yet; use linear, cosine or constant",
    ),
    Unsupported(
        "training.parallelism.tensor",
        is_other_than(1),
        "tensors are not split over ranks yet; leave it at 1 and use training.zero",
    ),
    Unsupported(
        "training.parallelism.sequence",
        is_other_than(1),
        "sequences are not split over ranks yet; leave it at 1",
    ),
    Unsupported(
        "training.zero.offload.optimizer", is_value(True), "nothing is kept in host memory yet"
    ),
    Unsupported(
        "training.zero.offload.parameters", is_value(True), "nothing is kept in host memory yet"
    ),
    Unsupported("training.compile", is_value(True), "models are not compiled yet"),
    Unsupported(
        "training.logging.wandbProject",
        said,
        "figures are not sent to Weights & Biases yet; use TensorBoard or the log",
    ),
    Unsupported("training.hooks.dataset", said, "hooks are not called yet"),
    Unsupported("training.hooks.model", said, "hooks are not called yet"),
    Unsupported("training.hooks.collate", said, "hooks are not called yet"),
    Unsupported("training.hooks.loss", said, "hooks are not called yet"),
    Unsupported(
        "evaluation.tasks.*.type",
        is_other_than("sequenceClassification"),
        "sequenceClassification is the one that runs",
    ),
    Unsupported(
        "export.push", said, "exports are not uploaded to a hub yet; take them from the storage"
    ),
    Unsupported(
        "scheduling.queueName", said, "jobs are not queued yet; leave it out to start at once"
    ),
    Unsupported(
        "scheduling.gang",
        is_other_than("none"),
        "pods are not scheduled as a gang yet; leave it at none",
    ),
)
"""Every field that is refused for now."""


def unsupported(spec: PretrainJobSpec) -> list[Problem]:
    """Give everything in a resolved spec that this version would have to ignore."""
    data = spec.model_dump(mode="json", by_alias=True)
    return [
        Problem(path, f"{_shown(value)} is not supported: {entry.sentence}")
        for entry in TABLE
        for path, value in _values(data, entry.path.split("."))
        if entry.refused(value)
    ]


def _values(data: Any, keys: list[str], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Give the values at a path, each with its own; nothing where an object is left out."""
    if not keys:
        yield path, data
    elif keys[0] == "*":
        for i, item in enumerate(data or []):
            yield from _values(item, keys[1:], (*path, i))
    elif data is not None:
        yield from _values(data.get(keys[0]), keys[1:], (*path, keys[0]))


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) else "this"
