"""How the input is cut into slices of near-equal bytes: one slice is one index of the Job.

Pure: only sizes are looked at. A cut in a file is a byte offset; the reader moves it to the next
document (see `readers.lines`), so that a plan needs no look into files and does not depend on how
many slices run at once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby

from pretrain_api.base import Message
from pydantic import ValidationError

from pretrain_jobs.corpus.sources import SourceFile, Split
from pretrain_jobs.errors import DataError
from pretrain_jobs.format_version import check_format

PLAN_KEY = "plan.json"
PLAN_FORMAT_VERSION = 1

MAX_SLICES = 10_000
"""Slices of one source at most; a larger input gets larger slices."""

WHOLE_FILE_SHARE = 20
"""A file smaller than a slice by this factor is not cut."""


class SlicePart(Message):
    """Bytes [start, end) of the file with this index in the plan's files."""

    file: int
    start: int
    end: int


class Slice(Message):
    """What one index reads, in order; `size` is the stored bytes of its parts."""

    index: int
    split: Split
    source: int
    parts: tuple[SlicePart, ...]
    size: int


class SlicePlan(Message):
    """All slices of a dataset; training and validation files never share one, nor do sources."""

    format_version: int = PLAN_FORMAT_VERSION
    files: tuple[SourceFile, ...]
    slices: tuple[Slice, ...]
    warnings: tuple[str, ...] = ()


def plan_slices(
    files: Sequence[SourceFile], *, slice_bytes: int, warnings: Sequence[str] = ()
) -> SlicePlan:
    """Cut files into slices of at most about `slice_bytes`, equal within a source.

    Uncompressed JSON lines and text are cut anywhere; other files and small ones go whole to the
    slice in which their middle falls. Empty files belong to no slice.
    """
    ordered = sorted(files, key=lambda file: (file.split, file.source, file.uri.encode()))
    groups = groupby(enumerate(ordered), key=lambda item: (item[1].split, item[1].source))
    slices: list[Slice] = []
    for (split, source), members in groups:
        for parts in _cut_group(list(members), slice_bytes):
            size = sum(part.end - part.start for part in parts)
            index = len(slices)
            slices.append(Slice(index=index, split=split, source=source, parts=parts, size=size))
    return SlicePlan(files=tuple(ordered), slices=tuple(slices), warnings=tuple(warnings))


def encode_plan(plan: SlicePlan) -> bytes:
    """The bytes of plan.json: equal plans give equal bytes."""
    data = plan.model_dump(mode="json", by_alias=True)
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode() + b"\n"


def decode_plan(data: bytes) -> SlicePlan:
    """Read plan.json; DataError when it is damaged or of another version."""
    check_format(data, PLAN_FORMAT_VERSION, what=PLAN_KEY)
    try:
        return SlicePlan.model_validate_json(data)
    except ValidationError as error:
        raise DataError(f"{PLAN_KEY} is damaged: {error.errors()[0]['msg']}") from error


def _cut_group(
    members: Sequence[tuple[int, SourceFile]], slice_bytes: int
) -> Iterator[tuple[SlicePart, ...]]:
    """The parts of each slice that has any, for the files of one source."""
    total = sum(file.size for _, file in members)
    count = min(-(-total // slice_bytes), MAX_SLICES)
    placed: list[tuple[int, SlicePart]] = []
    position = 0
    for number, file in members:
        placed += _place(number, file, position, total=total, count=count)
        position += file.size
    for _, parts in groupby(placed, key=lambda item: item[0]):
        yield tuple(part for _, part in parts)


def _place(
    number: int, file: SourceFile, position: int, *, total: int, count: int
) -> Iterator[tuple[int, SlicePart]]:
    """Pairs of slice and part for a file that begins `position` bytes into its source."""
    if file.size == 0:
        return
    if not _is_cut(file, total=total, count=count):
        middle = position + file.size // 2
        slice_number = _slice_at(middle, total=total, count=count)
        yield slice_number, SlicePart(file=number, start=0, end=file.size)
        return
    start = 0
    while start < file.size:
        slice_number = _slice_at(position + start, total=total, count=count)
        border = (slice_number + 1) * total // count
        end = min(border - position, file.size)
        yield slice_number, SlicePart(file=number, start=start, end=end)
        start = end


def _slice_at(position: int, *, total: int, count: int) -> int:
    """The slice k with k*total//count <= position < (k+1)*total//count."""
    guess = position * count // total
    return guess + 1 if (guess + 1) * total // count <= position else guess


def _is_cut(file: SourceFile, *, total: int, count: int) -> bool:
    splittable = file.compression == "none" and file.format in {"jsonl", "text"}
    return splittable and file.size * count * WHOLE_FILE_SHARE > total
