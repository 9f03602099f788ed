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

from pretrain_jobs.checkpoint.layout import (
    COMMIT,
    STEPS,
    CheckpointKey,
    group_keys,
    rank_directory,
)
from pretrain_jobs.checkpoint.manifest import (
    Commit,
    RankManifest,
    StoredFile,
    decode_abandonment,
    decode_commit,
)
from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import NotFoundError, ObjectStore
from pretrain_jobs.storage.base import Progress
from pretrain_jobs.storage.streams import chunks, hash_of

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


def files_of(commit: Commit) -> Iterator[tuple[RankManifest, StoredFile]]:
    """Every file that a commit vouches for, with the manifest of its rank."""
    for manifest in commit.ranks:
        for file in manifest.files:
            yield manifest, file


def verify(
    store: ObjectStore, commit: Commit, *, progress: Progress | None = None
) -> tuple[str, ...]:
    """Read every byte of a checkpoint; a sentence for each file that is not as COMMIT says."""

    def check(pair: tuple[RankManifest, StoredFile]) -> str:
        manifest, file = pair
        try:
            with store.open(commit.key.rank_file(manifest.rank, file.name)) as stream:
                size, sha256 = hash_of(chunks(stream), progress=progress)
        except NotFoundError:
            return f"{_place(manifest, file)} is missing"
        return _difference(manifest, file, size=size, sha256=sha256)

    return tuple(doubt for doubt in _each(check, files_of(commit)) if doubt)


def pull(
    store: ObjectStore, commit: Commit, directory: Path, *, progress: Progress | None = None
) -> None:
    """Copy a checkpoint into an existing directory, verified; DataError for a file that is not.

    DeepSpeed's files of all ranks lie side by side, as its own tools expect them; the rest is under
    `rank-NNNNN/`, and COMMIT beside them.
    """

    def copy(pair: tuple[RankManifest, StoredFile]) -> str:
        manifest, file = pair
        target = directory / local_place(manifest, file)
        try:
            sha256 = store.download(
                commit.key.rank_file(manifest.rank, file.name), target, progress=progress
            )
        except NotFoundError:
            return f"{_place(manifest, file)} is missing"
        return _difference(manifest, file, size=target.stat().st_size, sha256=sha256)

    doubts = [doubt for doubt in _each(copy, files_of(commit)) if doubt]
    if doubts:
        raise DataError(f"the checkpoint {store.uri}/{commit.key.prefix} is damaged: {doubts[0]}")
    (directory / COMMIT).write_bytes(store.read(commit.key.commit))


def local_place(manifest: RankManifest, file: StoredFile) -> Path:
    """Where a copy keeps a rank's file."""
    if file.name.endswith(".pt"):
        return Path(file.name)
    return Path(rank_directory(manifest.rank)) / file.name


def _each(
    function: Callable[[tuple[RankManifest, StoredFile]], str],
    pairs: Iterator[tuple[RankManifest, StoredFile]],
) -> list[str]:
    with ThreadPoolExecutor(PARALLEL_FILES, thread_name_prefix="checkpoint") as pool:
        return list(pool.map(function, pairs))


def _difference(manifest: RankManifest, file: StoredFile, *, size: int, sha256: str) -> str:
    if size != file.size:
        return f"{_place(manifest, file)} has {size} bytes instead of {file.size}"
    if sha256 != file.sha256:
        return f"{_place(manifest, file)} has another SHA-256 than its manifest"
    return ""


def _place(manifest: RankManifest, file: StoredFile) -> str:
    return f"{rank_directory(manifest.rank)}/{file.name}"
