"""The interface that every store implements, and its exceptions.

What a store does about names, retries and part sizes is its own; what callers may rely on is
written here and holds for `file://` and `s3://` alike (one conformance suite tests both).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from pretrain_api.reports import Cause

from pretrain_jobs.errors import StageError

Progress = Callable[[int], None]
"""Called with the number of bytes just transferred, from any thread of the transfer."""

SWEEP_AGE_SECONDS = 86_400.0
"""Default age from which an unfinished write counts as abandoned."""

PROBE_PREFIX = ".pretrain-probe-"
"""Start of the keys of probe objects; no listing shows them."""


class NotFoundError(StageError):
    """No object lies under this key."""

    cause = Cause.DATA_ERROR
    retryable = False


class AlreadyExistsError(StageError):
    """A conditional write found an object under its key."""

    retryable = False


@dataclass(frozen=True)
class ObjectInfo:
    """An object's key (relative to its store's root), size in bytes and ETag.

    The ETag changes when the object is written anew. On a file system it also depends on the
    time of writing; `ObjectStore.content_tag` gives one that depends on the content alone.
    """

    key: str
    size: int
    etag: str


class ObjectStore(Protocol):
    """Objects under one root URI; keys are relative, with `/` between parts.

    Writes are atomic: a reader sees the old object, the new one or none, never a part. Methods
    raise StorageUnavailableError (worth a retry), StorageDeniedError (once it is mended),
    StorageRefusedError or StorageFullError (not worth one); a method whose object is missing raises
    NotFoundError.
    """

    @property
    def uri(self) -> str:
        """The root, as an absolute URI without `/` at the end."""

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """All objects whose key starts with the prefix, in ascending order of key (code points)."""

    def head(self, key: str) -> ObjectInfo:
        """Size and ETag; raises NotFoundError. A refused request is never taken for "not found"."""

    def exists(self, key: str) -> bool:
        """Whether an object lies under the key."""

    def content_tag(self, info: ObjectInfo) -> str:
        """A tag for fingerprints: it changes with the content and not with a file's times.

        On S3 it is the ETag, which costs nothing. On a file system it is the SHA-256 of the
        content, which costs one read and is the same wherever an equal file lies.
        """

    def open(self, key: str) -> BinaryIO:
        """A forward stream of the object's bytes, to be used as a context manager."""

    def read(self, key: str) -> bytes:
        """The whole object."""

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """Up to `length` bytes from offset `start`; fewer (or none) at the object's end."""

    def write(self, key: str, data: bytes, *, if_absent: bool = False) -> ObjectInfo:
        """Write a small object; with `if_absent`, AlreadyExistsError if there is one.

        An `if_absent` write whose answer was lost is read back and compared, so racing writers
        that must know which of them won write different bytes.
        """

    def upload(self, path: Path, key: str, *, progress: Progress | None = None) -> ObjectInfo:
        """Copy a local file; `progress` gets the bytes of each part. The size is checked after."""

    def download(self, key: str, path: Path, *, progress: Progress | None = None) -> str:
        """Copy to a local file (temporary name, fsync, rename); returns its SHA-256 in hex."""

    def delete(self, key: str) -> None:
        """Delete an object; deleting none is a success."""

    def sweep(self, prefix: str = "", *, older_than_seconds: float = SWEEP_AGE_SECONDS) -> int:
        """Remove what writes cut off by a crash left behind under the prefix; returns how many.

        Such leftovers (temporary files, unfinished multipart uploads) are never listed as
        objects. A file that a living process still writes is left alone whatever its age; of an
        S3 upload only the age can be told, so 0 is for prefixes that nobody writes to any more.
        """

    def probe(self) -> tuple[str, ...]:
        """Write, read back and delete a small object; returns what works worse than it should.

        Raises what any other call would where the storage cannot be used at all, such as
        StorageUnavailableError when bytes come back changed.
        """
