"""Fetching a checkpoint's files onto a node: each once, by one of its ranks, verified as it comes.

The ranks that share a directory are a node. Which files they need is the caller's to say.
"""

from __future__ import annotations

import logging
import shutil
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pretrain_jobs.checkpoint.checking import Owned, download_and_check
from pretrain_jobs.checkpoint.failpoints import UNARMED, Failpoints
from pretrain_jobs.checkpoint.group import Group
from pretrain_jobs.checkpoint.layout import CheckpointKey, rank_directory
from pretrain_jobs.checkpoint.rounds import transfer
from pretrain_jobs.errors import StageError
from pretrain_jobs.storage import ObjectStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Node:
    """The ranks that see one directory, in ascending order, and which of them this one is."""

    directory: Path
    rank: int
    members: tuple[int, ...]

    @property
    def is_first(self) -> bool:
        """Whether this rank does what is done once on a node."""
        return self.rank == self.members[0]

    def place(self, key: CheckpointKey) -> Node:
        """The same with a directory for one checkpoint's files."""
        return replace(
            self, directory=self.directory / f"{key.step}-{key.generation}-{key.attempt}"
        )

    def path(self, owner: int, name: str) -> Path:
        """Where a saved rank's file comes to lie."""
        return self.directory / rank_directory(owner) / name

    def clear(self) -> None:
        """Delete the directory; only the first rank does, and no other may use it any more."""
        if self.is_first:
            shutil.rmtree(self.directory, ignore_errors=True)


def find_node(group: Group, directory: Path) -> Node:
    """Find the ranks that share a directory, by its host and inode. A collective."""
    directory.mkdir(parents=True, exist_ok=True)
    place = directory.stat()
    own = (socket.gethostname(), place.st_dev, place.st_ino)
    places = group.gather(own)
    members = tuple(rank for rank, other in enumerate(places) if other == own)
    return Node(directory, group.rank, members)


def assign(wanted: Sequence[Owned], members: Sequence[int]) -> dict[int, list[Owned]]:
    """Deal a node's files out to its ranks: each its own, then the largest to the idlest."""
    dealt: dict[int, list[Owned]] = {rank: [] for rank in members}
    for owner, file in wanted:
        if owner in dealt:
            dealt[owner].append((owner, file))
    others = [(owner, file) for owner, file in wanted if owner not in dealt]
    for owner, file in sorted(others, key=lambda owned: -owned[1].size):
        idlest = min(members, key=lambda rank: (_size(dealt[rank]), rank))
        dealt[idlest].append((owner, file))
    return dealt


@dataclass(frozen=True)
class Fetched:
    """What is wrong, by rank, or nothing; and this rank's bytes, by where they came from."""

    doubts: list[str]
    local_bytes: int
    stored_bytes: int


def fetch(
    store: ObjectStore,
    group: Group,
    key: CheckpointKey,
    node: Node,
    files: Sequence[Owned],
    *,
    local: ObjectStore | None = None,
    failpoints: Failpoints = UNARMED,
) -> Fetched:
    """Get this rank's share: what the node's `local` copies have, else from the store.

    A collective (see `rounds`). A copy that is not as it should be is left out without more ado.
    The store's errors are raised.
    """
    received: list[int] = []
    copied: list[int] = []

    def get(owned: Owned) -> str:
        owner, file = owned
        path = node.path(owner, file.name)
        doubt = ""
        if local is not None and _copies(local, key, owned, path):
            copied.append(file.size)
        else:
            doubt = download_and_check(store, key, owned, path, progress=received.append)
        failpoints.reach("during_download")
        return doubt

    doubts = transfer(
        group,
        [partial(get, owned) for owned in files],
        transferred=lambda: sum(received) + sum(copied),
        tell=lambda size: _log.info("restoring step %d: %.1f GB fetched", key.step, size / 1e9),
    )
    return Fetched(doubts, local_bytes=sum(copied), stored_bytes=sum(received))


def _copies(local: ObjectStore, key: CheckpointKey, owned: Owned, path: Path) -> bool:
    """Whether a file could be taken from the node's own disk."""
    try:
        doubt = download_and_check(local, key, owned, path)
    except StageError as error:
        doubt = str(error)
    if doubt:
        _log.debug("no local copy is used: %s", doubt)
    return not doubt


def _size(files: Sequence[Owned]) -> int:
    return sum(file.size for _, file in files)
