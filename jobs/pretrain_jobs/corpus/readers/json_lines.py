"""JSON lines: one object a line; https://jsonlines.org."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pretrain_jobs.corpus.readers.input import FileInput
from pretrain_jobs.corpus.readers.lines import Line, read_lines
from pretrain_jobs.corpus.readers.records import (
    Document,
    Place,
    Reject,
    RejectCause,
    document_of_object,
)


def read_json_lines(source: FileInput) -> Iterator[Document | Reject]:
    """A document for each line; blank lines are none, a bad line is a reject."""
    field = source.file.text_field
    for line in read_lines(source, None):
        if not line.data.isspace():
            yield _read_line(line, field, Place(source.file.uri, line.number, line.offset))


def _read_line(line: Line, field: str, place: Place) -> Document | Reject:
    try:
        text = line.data.decode()
    except UnicodeDecodeError as error:
        message = f"byte {line.offset + error.start} is not UTF-8 ({error.reason})"
        return place.reject(RejectCause.ENCODING, message)
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return place.reject(RejectCause.JSON, f"the line is not JSON: {error}")
    return document_of_object(value, field, place)
