"""Parquet, one row group at a time: memory follows the row group, not the file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pretrain_jobs.corpus.readers.input import FileInput
from pretrain_jobs.corpus.readers.records import (
    Document,
    Place,
    Reject,
    RejectCause,
    document_of_text,
)
from pretrain_jobs.errors import DataError

BATCH_ROWS = 1024
_BUFFER_BYTES = 1 << 16


def read_parquet(source: FileInput) -> Iterator[Document | Reject]:
    """A document for each row; DataError when the text column is missing or holds no text."""
    place = Place(source.file.uri)
    try:
        stored = io.BufferedReader(source.object_bytes(), _BUFFER_BYTES)
        file = pq.ParquetFile(stored, pre_buffer=False)
        _check_column(file.schema_arrow, source)
        yield from _rows(file, source.file.text_field, source.file.uri)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        yield place.reject(RejectCause.PARQUET, f"the file cannot be read on: {error}")


def _check_column(schema: pa.Schema, source: FileInput) -> None:
    field, uri = source.file.text_field, source.file.uri
    if field not in schema.names:
        raise DataError(f"{uri} has no column {field!r} (it has: {', '.join(schema.names[:20])})")
    kind = schema.field(field).type
    value_kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not (pa.types.is_string(value_kind) or pa.types.is_large_string(value_kind)):
        raise DataError(f"{uri}: column {field!r} must be text and is {kind}")


def _rows(file: pq.ParquetFile, field: str, uri: str) -> Iterator[Document | Reject]:
    for row, scalar in enumerate(_values(file, field), start=1):
        yield _document(scalar, field, Place(uri), row)


def _values(file: pq.ParquetFile, field: str) -> Iterator[Any]:
    """The column's values; a batch never reaches beyond its row group, however small that is."""
    for group in range(file.num_row_groups):
        for batch in file.iter_batches(
            batch_size=BATCH_ROWS, row_groups=[group], columns=[field], use_threads=False
        ):
            yield from batch.column(0)


def _document(scalar: Any, field: str, place: Place, row: int) -> Document | Reject:
    try:
        result = document_of_text(scalar.as_py(), field, place)
    except UnicodeDecodeError as error:
        result = place.reject(RejectCause.ENCODING, f"not UTF-8: {error.reason}")
    if isinstance(result, Document):
        return result
    return Reject(result.uri, None, None, result.cause, f"row {row}: {result.message}")
