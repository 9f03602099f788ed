"""Writing local files so that a reader or a crash never meets half of one.

The one place where local files are made: the `file://` store, downloads and progress files all
go through it. Errors of the operating system become the stages' own, with the path in them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from pretrain_jobs.errors import (
    StageError,
    StorageFullError,
    StorageRefusedError,
    StorageUnavailableError,
)
from pretrain_jobs.storage.base import AlreadyExistsError, NotFoundError

TEMPORARY_PREFIX = ".pretrain-tmp-"
"""Start of the names of files not yet complete; no listing shows them."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_REFUSED = frozenset(
    {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP}
    | {errno.EISDIR, errno.ENOTEMPTY, errno.EEXIST, errno.EOPNOTSUPP}
)
_ATTEMPTS = 16
"""Tries to make a temporary file while others delete the (empty) directory under it."""


def is_full(error: OSError) -> bool:
    """Whether a disk, a quota or a limit on file sizes left no room."""
    return error.errno in _FULL


def translate(error: OSError, path: Path, doing: str) -> StageError:
    """The stages' error for an error of the operating system while `doing` something to a path."""
    reason = error.strerror or str(error)
    if is_full(error):
        return StorageFullError(
            f"no space while {doing} {path}: {reason}; free space or raise the quota, then rerun"
        )
    if error.errno == errno.ENOENT:
        return NotFoundError(f"{path} does not exist (while {doing} it)")
    if error.errno in _REFUSED:
        return StorageRefusedError(
            f"{doing} {path} was refused: {reason}; check the path, its owner and how it is mounted"
        )
    return StorageUnavailableError(f"{doing} {path} failed: {reason}")


@contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Turn any OSError of the block into a stage's error."""
    try:
        yield
    except OSError as error:
        raise translate(error, path, doing) from error


@contextmanager
def atomic_file(path: Path, *, if_absent: bool = False) -> Iterator[BinaryIO]:
    """A stream whose bytes appear under `path`, on disk and whole, once the block has ended.

    If the block raises, nothing is left. Missing parent directories are made. With `if_absent`
    an existing file stays as it is and AlreadyExistsError is raised at the end of the block.
    """
    with translated(path, "writing"):
        temporary, stream = _create_temporary(path.parent)
        try:
            with stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
                _publish(temporary, path, if_absent=if_absent)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
        _sync_directory(path.parent)


def remove_abandoned(directory: Path, *, older_than_seconds: float) -> int:
    """Delete temporary files under a directory that no living process holds; returns how many."""
    removed = 0
    with translated(directory, "sweeping"):
        for path in sorted(directory.rglob(f"{TEMPORARY_PREFIX}*")):
            with suppress(FileNotFoundError):
                removed += _remove_if_abandoned(path, older_than_seconds)
    return removed


def _publish(temporary: Path, path: Path, *, if_absent: bool) -> None:
    if not if_absent:
        temporary.replace(path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError as error:
        raise AlreadyExistsError(f"{path} exists already") from error


def _create_temporary(directory: Path) -> tuple[Path, BinaryIO]:
    """A new file, locked for as long as it is open, in a directory that is made if need be."""
    for _ in range(_ATTEMPTS):
        temporary = directory / f"{TEMPORARY_PREFIX}{uuid4().hex}"
        try:
            _make_directory(directory)
            stream = temporary.open("xb")
        except FileNotFoundError:
            continue
        _lock(stream)
        if os.fstat(stream.fileno()).st_nlink:
            return temporary, stream
        stream.close()
    raise StorageUnavailableError(f"{directory} is deleted again and again while being written to")


def _lock(stream: BinaryIO) -> None:
    """Mark a temporary file as alive; file systems without locks rely on its age alone."""
    with suppress(OSError):
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX)


def _remove_if_abandoned(path: Path, older_than_seconds: float) -> int:
    with path.open("r+b") as stream:
        age = time.time() - os.fstat(stream.fileno()).st_mtime
        if age < older_than_seconds or _is_locked(stream):
            return 0
        path.unlink()
        return 1


def _is_locked(stream: BinaryIO) -> bool:
    """Whether a living process holds the file; takes the lock itself where there is none."""
    try:
        fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _make_directory(directory: Path) -> None:
    """Make a directory and its parents so that they survive a loss of power."""
    if directory.is_dir():
        return
    _make_directory(directory.parent)
    directory.mkdir(exist_ok=True)
    _sync_directory(directory.parent)


def _sync_directory(directory: Path) -> None:
    """Flush a directory's entries; file systems that cannot (EINVAL) need not."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)
