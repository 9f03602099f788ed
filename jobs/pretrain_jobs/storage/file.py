"""`file://`: objects as files under a directory that every pod mounts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from pretrain_jobs.errors import DataError, StorageUnavailableError, UserError
from pretrain_jobs.storage.base import (
    SWEEP_AGE_SECONDS,
    AlreadyExistsError,
    NotFoundError,
    ObjectInfo,
    Progress,
)
from pretrain_jobs.storage.local_files import (
    TEMPORARY_PREFIX,
    atomic_file,
    remove_abandoned,
    translated,
)
from pretrain_jobs.storage.streams import chunks, copy_hashed, sha256_of

_Ancestors = frozenset[tuple[int, int]]


@dataclass(frozen=True)
class FileStore:
    """An `ObjectStore` over a directory; `uri` is what the caller named it."""

    root: Path
    uri: str

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """Walk the directories in the order of the keys' UTF-8 bytes, as S3 lists them."""
        start, base = self._directory_of(prefix)
        with translated(start, "listing"):
            yield from self._walk(start, base, prefix, frozenset())

    def head(self, key: str) -> ObjectInfo:
        """See ObjectStore; a directory is not an object."""
        path = self._path(key)
        with translated(path, "looking at"):
            try:
                status = path.stat()
            except NotADirectoryError as error:
                raise self._missing(key) from error
            except FileNotFoundError as error:
                raise self._missing(key) from error
        if not path.is_file():
            raise self._missing(key)
        return _info(key, status)

    def exists(self, key: str) -> bool:
        """See ObjectStore."""
        try:
            self.head(key)
        except NotFoundError:
            return False
        return True

    def content_tag(self, info: ObjectInfo) -> str:
        """SHA-256 of the content: equal files have equal tags wherever they lie."""
        with self.open(info.key) as stream, translated(self._path(info.key), "reading"):
            return f"sha256:{sha256_of(stream)}"

    def open(self, key: str) -> BinaryIO:
        """See ObjectStore."""
        path = self._path(key)
        with translated(path, "reading"):
            try:
                return path.open("rb")
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
                raise self._missing(key) from error

    def read(self, key: str) -> bytes:
        """See ObjectStore."""
        with self.open(key) as stream, translated(self._path(key), "reading"):
            return stream.read()

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """See ObjectStore."""
        with self.open(key) as stream, translated(self._path(key), "reading"):
            stream.seek(start)
            return stream.read(length)

    def write(self, key: str, data: bytes, *, if_absent: bool = False) -> ObjectInfo:
        """See ObjectStore."""
        with atomic_file(self._path(key), if_absent=if_absent) as stream:
            stream.write(data)
        return self.head(key)

    def upload(self, path: Path, key: str, *, progress: Progress | None = None) -> ObjectInfo:
        """See ObjectStore; the copy is flushed to disk before it appears under its name."""
        with translated(path, "reading"), path.open("rb") as source:
            expected = os.fstat(source.fileno()).st_size
            with atomic_file(self._path(key)) as target:
                for chunk in chunks(source):
                    target.write(chunk)
                    if progress:
                        progress(len(chunk))
        info = self.head(key)
        if info.size != expected:
            raise StorageUnavailableError(
                f"{self._path(key)} has {info.size} bytes after copying {path}, which had "
                f"{expected}: was one of them changed meanwhile?"
            )
        return info

    def download(self, key: str, path: Path, *, progress: Progress | None = None) -> str:
        """See ObjectStore."""
        with self.open(key) as source, atomic_file(path) as target:
            return copy_hashed(source, target, progress=progress)

    def delete(self, key: str) -> None:
        """See ObjectStore; directories that become empty go too."""
        path = self._path(key)
        with translated(path, "deleting"):
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                path.unlink()
            self._remove_empty_parents(path)

    def sweep(self, prefix: str = "", *, older_than_seconds: float = SWEEP_AGE_SECONDS) -> int:
        """See ObjectStore; the whole directory that holds the prefix is swept."""
        directory, _ = self._directory_of(prefix)
        return remove_abandoned(directory, older_than_seconds=older_than_seconds)

    def probe(self) -> tuple[str, ...]:
        """See ObjectStore; the probe is a temporary file, which no listing shows."""
        key, data = f"{TEMPORARY_PREFIX}probe-{uuid4().hex}", uuid4().bytes
        self.write(key, data)
        try:
            with suppress(AlreadyExistsError):
                self.write(key, b"replaced", if_absent=True)
            if self.read(key) != data:
                raise StorageUnavailableError(f"{self.uri}: bytes came back changed")
        finally:
            self.delete(key)
        return ()

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if any(part in {"", ".", ".."} or "\0" in part for part in parts):
            raise UserError(f"{key!r} cannot be a key under {self.uri}: use names joined by '/'")
        return self.root.joinpath(*parts)

    def _directory_of(self, prefix: str) -> tuple[Path, str]:
        """The deepest directory that holds every key with the prefix, and its keys' start."""
        directory, slash, _ = prefix.rpartition("/")
        return (self._path(directory) if slash else self.root), directory + slash

    def _missing(self, key: str) -> NotFoundError:
        return NotFoundError(f"no object {key!r} under {self.uri}")

    def _walk(
        self, directory: Path, base: str, prefix: str, ancestors: _Ancestors
    ) -> Iterator[ObjectInfo]:
        """Yield what lies under a directory whose keys start with `base`, loops cut off."""
        try:
            status = directory.stat()
            entries = sorted(os.scandir(directory), key=_listing_order)
        except (FileNotFoundError, NotADirectoryError):
            return
        identity = (status.st_dev, status.st_ino)
        if identity in ancestors:
            return
        for entry in entries:
            yield from self._visit(entry, base, prefix, ancestors | {identity})

    def _visit(
        self, entry: os.DirEntry[str], base: str, prefix: str, ancestors: _Ancestors
    ) -> Iterator[ObjectInfo]:
        key = base + entry.name
        if entry.is_dir():
            if f"{key}/".startswith(prefix):
                yield from self._walk(Path(entry.path), key + "/", prefix, ancestors)
            return
        if not key.startswith(prefix) or entry.name.startswith(TEMPORARY_PREFIX):
            return
        _require_utf8(entry)
        if entry.is_file():
            with suppress(FileNotFoundError):
                yield _info(key, entry.stat())

    def _remove_empty_parents(self, path: Path) -> None:
        for parent in path.parents:
            if parent == self.root or not parent.is_relative_to(self.root):
                return
            try:
                parent.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                return


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(
        key=key, size=status.st_size, etag=f"{status.st_size:x}-{status.st_mtime_ns:x}"
    )


def _listing_order(entry: os.DirEntry[str]) -> bytes:
    """A directory sorts as the keys under it do: with its `/`."""
    return os.fsencode(entry.name + "/" if entry.is_dir() else entry.name)


def _require_utf8(entry: os.DirEntry[str]) -> None:
    try:
        entry.name.encode()
    except UnicodeEncodeError as error:
        raise DataError(
            f"the name of {os.fsencode(entry.path)!r} is not UTF-8: rename the file"
        ) from error
