"""Lines of a file's part, so that parts that touch share out the lines between them.

A line ends at a line feed and at nothing else. With start s > 0 a part begins at the first line
that starts at or after s, and it ends where the next part begins. A reader of larger units says
which lines separate them (`is_separator`): then a part begins after the first separator that
starts at or after s.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pretrain_jobs.corpus.readers.input import BOM, FileInput


@dataclass(frozen=True, slots=True)
class Line:
    """A line with its line feed; `number` from 1, None where the part begins inside the file."""

    number: int | None
    offset: int
    data: bytes


def read_lines(source: FileInput, is_separator: Callable[[bytes], bool] | None) -> Iterator[Line]:
    """The lines of a part, in order; without a byte-order mark at the file's start."""
    start, end = source.part.start, source.part.end
    whole = start == 0 and end == source.file.size
    if start == 0:
        lines = _numbered(source.stream())
    else:
        lines = _after_cut(source.stream_from(start - 1), start - 1, is_separator, end)
    yield from lines if whole else _until(lines, end, is_separator)


def _numbered(stream: io.BufferedReader) -> Iterator[Line]:
    offset = 0
    for number, data in enumerate(stream, start=1):
        yield Line(number, offset, data.removeprefix(BOM) if number == 1 else data)
        offset += len(data)


def _after_cut(
    stream: io.BufferedReader,
    offset: int,
    is_separator: Callable[[bytes], bool] | None,
    end: int,
) -> Iterator[Line]:
    """Lines after a cut; `stream` begins one byte before it, to see if a line ends there."""
    offset += len(stream.readline())
    skipping = is_separator is not None
    while data := stream.readline():
        if not skipping:
            yield Line(None, offset, data)
        elif is_separator and is_separator(data):
            if offset >= end:
                return
            skipping = False
        offset += len(data)


def _until(
    lines: Iterator[Line], end: int, is_separator: Callable[[bytes], bool] | None
) -> Iterator[Line]:
    """Lines up to where the next part begins."""
    for line in lines:
        if line.offset >= end and is_separator is None:
            return
        yield line
        if line.offset >= end and is_separator and is_separator(line.data):
            return
