"""A slice's documents, whatever their files' formats, in one stream with its rejects.

The one door to the readers. Text comes out as it lies in the file; cleaning comes later.
"""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator

import zstandard
from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.corpus.readers.csv_rows import read_csv
from pretrain_jobs.corpus.readers.input import FileInput
from pretrain_jobs.corpus.readers.json_array import read_json_array
from pretrain_jobs.corpus.readers.json_lines import read_json_lines
from pretrain_jobs.corpus.readers.parquet import read_parquet
from pretrain_jobs.corpus.readers.records import Document, Reject, RejectCause
from pretrain_jobs.corpus.readers.text import read_text
from pretrain_jobs.corpus.slices import Slice, SlicePart, SlicePlan
from pretrain_jobs.corpus.sources import FileFormat

__all__ = ["Document", "Reject", "RejectCause", "read_documents"]

_DAMAGED = (gzip.BadGzipFile, zlib.error, lzma.LZMAError, zstandard.ZstdError)

_READERS: dict[FileFormat, Callable[[FileInput], Iterator[Document | Reject]]] = {
    "jsonl": read_json_lines,
    "json": read_json_array,
    "text": read_text,
    "csv": read_csv,
    "parquet": read_parquet,
}


def read_documents(
    part: Slice,
    plan: SlicePlan,
    storage: StorageSpec,
    *,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Document | Reject]:
    """Documents and rejects of a slice, in the order of its parts.

    Memory follows the largest record, not the input. `progress` gets the stored bytes of each
    read. Raises DataError for a file that changed its size since the plan was made and for a
    CSV or Parquet file without the text column.
    """
    for piece in part.parts:
        yield from _read_part(plan, piece, storage, progress)


def _read_part(
    plan: SlicePlan,
    piece: SlicePart,
    storage: StorageSpec,
    progress: Callable[[int], None] | None,
) -> Iterator[Document | Reject]:
    """A cut or damaged archive ends the part with a reject; what came before it is kept."""
    file = plan.files[piece.file]
    source = FileInput.open(file, piece, storage, progress=progress)
    try:
        yield from _READERS[file.format](source)
    except EOFError:
        message = f"the {file.compression} archive ends before its end mark: its rest is lost"
        yield Reject(file.uri, None, None, RejectCause.TRUNCATED, message)
    except _DAMAGED as error:
        message = f"the {file.compression} archive cannot be read on: {error}"
        yield Reject(file.uri, None, None, RejectCause.DAMAGED, message)
