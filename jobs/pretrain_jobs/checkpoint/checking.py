"""Whether stored files are as their manifest says: the one place that judges and words it."""

from __future__ import annotations

from pathlib import Path

from pretrain_jobs.checkpoint.layout import CheckpointKey, rank_directory
from pretrain_jobs.checkpoint.manifest import StoredFile
from pretrain_jobs.storage import NotFoundError, ObjectStore
from pretrain_jobs.storage.base import Progress
from pretrain_jobs.storage.streams import chunks, hash_of

Owned = tuple[int, StoredFile]
"""A file and the rank that saved it."""


def read_and_check(
    store: ObjectStore, key: CheckpointKey, owned: Owned, *, progress: Progress | None = None
) -> str:
    """Read all of a stored file and keep nothing; what is wrong with it, or nothing."""
    owner, file = owned
    try:
        with store.open(key.rank_file(owner, file.name)) as stream:
            size, sha256 = hash_of(chunks(stream), progress=progress)
    except NotFoundError:
        return _missing(owned)
    return _difference(owned, size=size, sha256=sha256)


def download_and_check(
    store: ObjectStore,
    key: CheckpointKey,
    owned: Owned,
    path: Path,
    *,
    progress: Progress | None = None,
) -> str:
    """Copy a stored file to `path`; what is wrong with it, or nothing."""
    owner, file = owned
    try:
        sha256 = store.download(key.rank_file(owner, file.name), path, progress=progress)
    except NotFoundError:
        return _missing(owned)
    return _difference(owned, size=path.stat().st_size, sha256=sha256)


def _missing(owned: Owned) -> str:
    return f"{_place(owned)} is missing"


def _difference(owned: Owned, *, size: int, sha256: str) -> str:
    _, file = owned
    if size != file.size:
        return f"{_place(owned)} has {size} bytes instead of {file.size}"
    if sha256 != file.sha256:
        return f"{_place(owned)} has another SHA-256 than its manifest"
    return ""


def _place(owned: Owned) -> str:
    owner, file = owned
    return f"{rank_directory(owner)}/{file.name}"
