"""CSV with a header row (RFC 4180): quoted line breaks and quotes, fields of any length."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from typing import Protocol

from pretrain_jobs.corpus.readers.input import FileInput
from pretrain_jobs.corpus.readers.records import (
    Document,
    Place,
    Reject,
    RejectCause,
    document_of_text,
)
from pretrain_jobs.errors import DataError


class _Rows(Protocol):
    """The part of the standard library's CSV reader that is used."""

    line_num: int

    def __next__(self) -> list[str]: ...


def read_csv(source: FileInput) -> Iterator[Document | Reject]:
    """A document for each row; DataError when no column has the text field's name.

    Bytes that are not UTF-8 come in as half surrogates, which refuses their row and no other.
    """
    csv.field_size_limit(sys.maxsize)
    text = io.TextIOWrapper(
        source.text_stream(), encoding="utf-8", errors="surrogateescape", newline=""
    )
    rows = csv.reader(text, strict=True)
    uri, field = source.file.uri, source.file.text_field
    header = next(rows, None)
    if header is None:
        return
    if field not in header:
        raise DataError(f"{uri} has no column {field!r} (it has: {', '.join(header[:20])})")
    yield from _documents(rows, header.index(field), field, uri)


def _documents(rows: _Rows, column: int, field: str, uri: str) -> Iterator[Document | Reject]:
    while True:
        place = Place(uri, rows.line_num + 1)
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            yield place.reject(RejectCause.CSV, f"the row cannot be read: {error}")
            continue
        if row:
            yield _document(row, column, field, place)


def _document(row: list[str], column: int, field: str, place: Place) -> Document | Reject:
    if column >= len(row):
        message = f"the row has {len(row)} fields and {field!r} is field {column + 1}"
        return place.reject(RejectCause.MISSING_FIELD, message)
    return document_of_text(row[column], field, place)
