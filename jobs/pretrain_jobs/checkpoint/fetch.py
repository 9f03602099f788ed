"""Fetching a checkpoint's files onto a node: each once, by one of its ranks, verified as it comes.

The ranks that share a directory are a node. Which files they need is the caller's to say.
"""

from __future__ import annotations

import logging
import shutil
import socket
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from pretrain_jobs.checkpoint.checking import Owned, download_and_check
from pretrain_jobs.checkpoint.failpoints import UNARMED, Failpoints
from pretrain_jobs.checkpoint.group import Group
from pretrain_jobs.checkpoint.layout import CheckpointKey, rank_directory
from pretrain_jobs.storage import ObjectStore

DOWNLOADS = 4
"""Files that one rank downloads at a time."""

ROUND_SECONDS = 10.0
"""How often ranks that still download meet; well below any collective's time-out."""

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


def fetch(
    store: ObjectStore,
    group: Group,
    key: CheckpointKey,
    node: Node,
    files: Sequence[Owned],
    *,
    failpoints: Failpoints = UNARMED,
) -> list[str]:
    """Download this rank's share; by rank, what is wrong with a file, or nothing. A collective.

    Ranks that are done go on meeting those that are not, so it may take longer than the group's
    time-out, and a rank that is lost meanwhile is noticed. The storage's errors are raised.
    """
    received: list[int] = []

    def download(owned: Owned) -> str:
        owner, file = owned
        path = node.path(owner, file.name)
        doubt = download_and_check(store, key, owned, path, progress=received.append)
        failpoints.reach("during_download")
        return doubt

    with ThreadPoolExecutor(DOWNLOADS, thread_name_prefix="restore") as pool:
        try:
            futures = [pool.submit(download, owned) for owned in files]
            while True:
                _, pending = wait(futures, ROUND_SECONDS, FIRST_EXCEPTION)
                doubt = _first_doubt(futures)
                told = group.gather((not pending, doubt, sum(received)))
                if all(done for done, _, _ in told):
                    return [doubt for _, doubt, _ in told]
                if group.rank == 0:
                    gigabytes = sum(size for _, _, size in told) / 1e9
                    _log.info("restoring step %d: %.1f GB fetched", key.step, gigabytes)
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _first_doubt(futures: Sequence[Future[str]]) -> str:
    doubts = (future.result() for future in futures if future.done())
    return next((doubt for doubt in doubts if doubt), "")


def _size(files: Sequence[Owned]) -> int:
    return sum(file.size for _, file in files)
