"""A file's bytes for a reader: the part's range, decompressed, without a byte-order mark.

Streams only: at most one chunk of the store and one of the decompressor are held.
"""

from __future__ import annotations

import gzip
import io
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, cast

from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.corpus.readers.zstd import ZstdStream
from pretrain_jobs.corpus.slices import SlicePart
from pretrain_jobs.corpus.sources import SourceFile, split_uri
from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import ObjectStore, open_store

BOM = b"\xef\xbb\xbf"
CHUNK_BYTES = 1 << 22
"""Bytes of one request to the store."""

Progress = Callable[[int], None]


@dataclass(frozen=True)
class FileInput:
    """One part of one file, ready to be read by the reader of its format."""

    file: SourceFile
    part: SlicePart
    store: ObjectStore
    key: str
    progress: Progress | None

    @classmethod
    def open(
        cls,
        file: SourceFile,
        part: SlicePart,
        storage: StorageSpec,
        *,
        progress: Progress | None = None,
    ) -> FileInput:
        """Look the file up; DataError when its size is no longer the plan's."""
        root, key = split_uri(file.uri)
        store = open_store(storage, root)
        size = store.head(key).size
        if size != file.size:
            raise DataError(
                f"{file.uri} has {size} bytes and had {file.size} when the slices were planned: "
                "leave inputs alone while a job runs, then start it again"
            )
        return cls(file, part, store, key, progress)

    def stream(self) -> io.BufferedReader:
        """The whole file from its first byte, decompressed."""
        return io.BufferedReader(_decompressed(self.object_bytes(), self.file), CHUNK_BYTES)

    def text_stream(self) -> io.BufferedReader:
        """As `stream`, after any byte-order mark."""
        stream = self.stream()
        if stream.peek(len(BOM))[: len(BOM)] == BOM:
            stream.read(len(BOM))
        return stream

    def stream_from(self, start: int) -> io.BufferedReader:
        """An uncompressed file from byte `start` to its end."""
        raw = self.object_bytes()
        raw.seek(start)
        return io.BufferedReader(raw, CHUNK_BYTES)

    def object_bytes(self) -> ObjectBytes:
        """The file as it is stored, to be read anywhere."""
        return ObjectBytes(self.store, self.key, self.file.size, self.progress)


def _decompressed(raw: io.RawIOBase, file: SourceFile) -> io.RawIOBase:
    """The stored bytes inflated; archives of several members or frames are read as one."""
    if file.compression == "none":
        return raw
    if file.compression == "zstd":
        return ZstdStream(raw)
    source = cast("BinaryIO", io.BufferedReader(raw, CHUNK_BYTES))
    if file.compression == "gzip":
        return _Inflated(gzip.GzipFile(fileobj=source))
    return _Inflated(lzma.LZMAFile(source))


class _Inflated(io.RawIOBase):
    """An archive's content in pieces, so that nothing read is lost where the archive breaks."""

    def __init__(self, archive: gzip.GzipFile | lzma.LZMAFile) -> None:
        self._archive = archive

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See io.RawIOBase."""
        data = self._archive.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


class ObjectBytes(io.RawIOBase):
    """An object of a store as a file that can be read anywhere; `progress` gets bytes read."""

    def __init__(
        self, store: ObjectStore, key: str, size: int, progress: Progress | None = None
    ) -> None:
        self._store = store
        self._key = key
        self._size = size
        self._position = 0
        self._progress = progress

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def seekable(self) -> bool:
        """See io.IOBase."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """See io.IOBase."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See io.RawIOBase; one range of the store for each call."""
        wanted = min(len(buffer), self._size - self._position)
        if wanted <= 0:
            return 0
        data = self._store.read_range(self._key, self._position, wanted)
        buffer[: len(data)] = data
        self._position += len(data)
        if self._progress:
            self._progress(len(data))
        return len(data)
