"""The interface that every store implements, and its exceptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from pretrain_jobs.errors import StageError


class NotFoundError(StageError):
    """No object lies under this key."""

    retryable = False


class AlreadyExistsError(StageError):
    """A conditional write found an object under its key."""

    retryable = False


@dataclass(frozen=True)
class ObjectInfo:
    """An object's key (relative to its store's root), size in bytes and ETag."""

    key: str
    size: int
    etag: str


class ObjectStore(Protocol):
    """Objects under one root URI; keys are relative, with `/` between parts.

    Writes are atomic: a reader sees the old object, the new one or none, never a part.
    """

    uri: str

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects whose key starts with the prefix, in ascending order of key (code points)."""

    def head(self, key: str) -> ObjectInfo:
        """Size and ETag; raises NotFoundError. A refused request is never taken for "not found"."""

    def exists(self, key: str) -> bool:
        """Whether an object lies under the key."""

    def open(self, key: str) -> BinaryIO:
        """A forward stream of the object's bytes, to be used as a context manager."""

    def read(self, key: str) -> bytes:
        """The whole object."""

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Up to `length` bytes from offset `start`; fewer at the object's end."""

    def write(self, key: str, data: bytes, *, if_absent: bool = False) -> ObjectInfo:
        """Write a small object; with `if_absent`, AlreadyExistsError if there is one."""

    def upload(
        self, path: Path, key: str, *, progress: Callable[[int], None] | None = None
    ) -> ObjectInfo:
        """Copy a local file; `progress` gets the bytes of each part. The size is checked after."""

    def download(self, key: str, path: Path) -> str:
        """Copy to a local file (temporary name, fsync, rename); returns its SHA-256 in hex."""

    def delete(self, key: str) -> None:
        """Delete an object; deleting none is a success."""
