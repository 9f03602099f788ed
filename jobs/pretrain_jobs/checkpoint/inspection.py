"""Checkpoints seen from outside a run: which there are, whether they are sound, and copies of them.

Nothing here needs torch, a process group or the job's config; it reads what the protocol wrote
(`layout`, `manifest`) and takes no name for evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pretrain_jobs.checkpoint.checking import Owned, download_and_check, read_and_check
from pretrain_jobs.checkpoint.layout import (
    COMMIT,
    STEPS,
    CheckpointKey,
    group_keys,
    rank_directory,
)
from pretrain_jobs.checkpoint.manifest import Commit, decode_abandonment, decode_commit
from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import NotFoundError, ObjectStore
from pretrain_jobs.storage.base import Progress

State = Literal["committed", "damaged", "uncommitted", "given up"]

PARALLEL_FILES = 4
"""Files that are read at the same time."""


@dataclass(frozen=True)
class Found:
    """A checkpoint under a URI.

    A `committed` one has a COMMIT that agrees with itself; a `damaged` one has a COMMIT that cannot
    be read, for the reason `doubt`; an `uncommitted` one has none, and one that was `given up` has
    a later attempt's mark in its place. `size` is in bytes, of all objects that lie there.
    """

    key: CheckpointKey
    state: State
    size: int
    commit: Commit | None = None
    doubt: str = ""


def find(store: ObjectStore) -> tuple[Found, ...]:
    """All checkpoints under the store's root, the newest first."""
    sizes = {info.key: info.size for info in store.list(STEPS)}
    found = []
    for listed in group_keys(sizes):
        size = sum(sizes[key] for key in listed.keys)
        if not listed.committed:
            found.append(Found(listed.key, "uncommitted", size))
            continue
        try:
            data = store.read(listed.key.commit)
            if decode_abandonment(data) is not None:
                found.append(Found(listed.key, "given up", size))
                continue
            commit = decode_commit(data, listed.key)
        except (DataError, NotFoundError) as error:
            found.append(Found(listed.key, "damaged", size, doubt=str(error)))
        else:
            found.append(Found(listed.key, "committed", size, commit))
    return tuple(found)


def files_of(commit: Commit) -> Iterator[Owned]:
    """Every file that a commit vouches for, with its rank."""
    for manifest in commit.ranks:
        for file in manifest.files:
            yield manifest.rank, file


def verify(
    store: ObjectStore, commit: Commit, *, progress: Progress | None = None
) -> tuple[str, ...]:
    """Read every byte of a checkpoint; a sentence for each file that is not as COMMIT says."""

    def check(owned: Owned) -> str:
        return read_and_check(store, commit.key, owned, progress=progress)

    return tuple(doubt for doubt in _each(check, files_of(commit)) if doubt)


def pull(
    store: ObjectStore, commit: Commit, directory: Path, *, progress: Progress | None = None
) -> None:
    """Copy a checkpoint into an existing directory, verified; DataError for a file that is not.

    DeepSpeed's files of all ranks lie side by side, as its own tools expect them; the rest is under
    `rank-NNNNN/`, and COMMIT beside them.
    """

    def copy(owned: Owned) -> str:
        path = directory / local_place(owned)
        return download_and_check(store, commit.key, owned, path, progress=progress)

    doubts = [doubt for doubt in _each(copy, files_of(commit)) if doubt]
    if doubts:
        raise DataError(f"the checkpoint {store.uri}/{commit.key.prefix} is damaged: {doubts[0]}")
    (directory / COMMIT).write_bytes(store.read(commit.key.commit))


def local_place(owned: Owned) -> Path:
    """Where a copy keeps a rank's file."""
    owner, file = owned
    if file.name.endswith(".pt"):
        return Path(file.name)
    return Path(rank_directory(owner)) / file.name


def _each(function: Callable[[Owned], str], files: Iterator[Owned]) -> list[str]:
    with ThreadPoolExecutor(PARALLEL_FILES, thread_name_prefix="checkpoint") as pool:
        return list(pool.map(function, files))
