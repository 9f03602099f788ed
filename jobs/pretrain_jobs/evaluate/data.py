"""Labelled examples of a task: read, mapped to classes, split into training and test.

Text and labels only; tokens are `encode`'s subject. Nothing here depends on a clock, on the order
of a hash table or on where a run was interrupted.
"""

from __future__ import annotations

import csv
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pretrain_api.spec.evaluation import TaskDataSpec
from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.corpus.sources import split_uri
from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import NotFoundError, open_store
from pretrain_jobs.storage.uri import absolute_uri


@dataclass(frozen=True)
class Example:
    """A text and its label as it is written in the file."""

    text: str
    label: str


@dataclass(frozen=True)
class TaskData:
    """Texts in the order of the files, with the class of each: an index into `labels`."""

    labels: tuple[str, ...]
    train_texts: tuple[str, ...]
    train_classes: NDArray[np.int64]
    test_texts: tuple[str, ...]
    test_classes: NDArray[np.int64]


def load_task_data(data: TaskDataSpec, storage: StorageSpec, directory: Path) -> TaskData:
    """Read a task's files through a local directory.

    Without a test file, a share of each label's examples is held out by the hash of their text,
    so that an example stays where it is when others are added. DataError for a file that is
    missing or of another kind, a field that is missing, and labels that cannot be learnt.
    """
    examples = _read(data.uri, data, storage, directory / "train")
    if data.test_uri is not None:
        train, test = examples, _read(data.test_uri, data, storage, directory / "test")
    else:
        train, test = split_by_content(examples, data.test_fraction)
    labels = _labels(train, test, data.uri)
    if data.max_test_samples is not None:
        test = _first_by_hash(test, data.max_test_samples)
    number = {label: index for index, label in enumerate(labels)}
    return TaskData(
        labels=labels,
        train_texts=tuple(example.text for example in train),
        train_classes=np.array([number[example.label] for example in train], dtype=np.int64),
        test_texts=tuple(example.text for example in test),
        test_classes=np.array([number[example.label] for example in test], dtype=np.int64),
    )


def training_subset(count: int, limit: int | None, *, seed: int) -> NDArray[np.int64]:
    """Indices int64 [n] of the examples that the run of a seed is trained on, ascending."""
    if limit is None or limit >= count:
        return np.arange(count, dtype=np.int64)
    chosen = np.random.default_rng([seed, 0]).permutation(count)[:limit]
    return np.sort(chosen).astype(np.int64)


def split_by_content(
    examples: Sequence[Example], test_fraction: float
) -> tuple[list[Example], list[Example]]:
    """Training and test examples: of each label, those with the lowest hashes are the test.

    Equal texts of a label stay together. A label keeps at least one training example.
    """
    held_out: set[tuple[str, str]] = set()
    for label, total in sorted(Counter(example.label for example in examples).items()):
        ranked = sorted(_hash(example.text) for example in examples if example.label == label)
        wanted = min(round(test_fraction * total), total - 1)
        cut = ranked[wanted]
        held_out |= {(label, value) for value in ranked[:wanted] if value != cut}
    train: list[Example] = []
    test: list[Example] = []
    for example in examples:
        (test if (example.label, _hash(example.text)) in held_out else train).append(example)
    return train, test


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()


def _first_by_hash(examples: Sequence[Example], limit: int) -> list[Example]:
    """The `limit` examples with the lowest hashes, in their own order."""
    ranked = sorted(range(len(examples)), key=lambda i: (_hash(examples[i].text), i))
    return [examples[i] for i in sorted(ranked[:limit])]


def _labels(train: Sequence[Example], test: Sequence[Example], uri: str) -> tuple[str, ...]:
    """All labels, numbers by their value before others by their text."""
    known = {example.label for example in train}
    if len(known) < 2:
        found = f"only the label {min(known)!r}" if known else "no example"
        raise DataError(
            f"{uri} has {found} to train on; a classification needs at least two labels"
        )
    if not test:
        raise DataError(f"{uri} leaves no example for the test: give more, or a testUri")
    unknown = sorted({example.label for example in test} - known)
    if unknown:
        raise DataError(
            f"the test examples of {uri} have labels that no training example has: "
            f"{', '.join(map(repr, unknown[:5]))}"
        )
    return tuple(sorted(known, key=_label_order))


def _label_order(label: str) -> tuple[int, int, str]:
    is_number = label.removeprefix("-").isdecimal()
    return (0, int(label), label) if is_number else (1, 0, label)


def _read(uri: str, data: TaskDataSpec, storage: StorageSpec, path: Path) -> list[Example]:
    where = absolute_uri(uri, base=storage.uri)
    reader = next((read for suffix, read in _READERS.items() if where.endswith(suffix)), None)
    if reader is None:
        raise DataError(
            f"evaluation data {where} is neither .jsonl nor .csv, which are what can be read"
        )
    folder, key = split_uri(where)
    try:
        open_store(storage, folder).download(key, path)
    except NotFoundError as error:
        raise DataError(f"evaluation data {where} is not there") from error
    try:
        return [_example(row, line, data, where) for line, row in reader(path, where)]
    except UnicodeDecodeError as error:
        raise DataError(f"evaluation data {where} is not UTF-8: {error}") from error


def _json_lines(path: Path, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    text = path.read_bytes().decode("utf-8-sig")
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise DataError(f"{where} line {number} is not JSON: {error}") from error
        if not isinstance(row, dict):
            raise DataError(f"{where} line {number} is not an object")
        yield number, row


def _csv(path: Path, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    csv.field_size_limit(sys.maxsize)
    with path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream, strict=True)
        try:
            for row in reader:
                yield reader.line_num, {name: value for name, value in row.items() if name}
        except csv.Error as error:
            raise DataError(f"{where} line {reader.line_num} is not CSV: {error}") from error


_Reader = Callable[[Path, str], Iterator[tuple[int, dict[str, Any]]]]
_READERS: dict[str, _Reader] = {".jsonl": _json_lines, ".csv": _csv}


def _example(row: dict[str, Any], line: int, data: TaskDataSpec, where: str) -> Example:
    text, label = (row.get(name) for name in (data.text_field, data.label_field))
    for name, value in ((data.text_field, text), (data.label_field, label)):
        if value is None:
            raise DataError(
                f"{where} line {line} has no field {name!r}; it has {', '.join(row) or 'none'}"
            )
    if not isinstance(text, str):
        raise DataError(f"{where} line {line}: {data.text_field} is not a string")
    if isinstance(label, bool) or not isinstance(label, str | int):
        raise DataError(
            f"{where} line {line}: {data.label_field} is neither a string nor an integer"
        )
    return Example(text=text, label=str(label))
