"""Shards of a dataset on this machine: downloaded once, verified, decoded a few at a time.

Processes of one pod share the directory of downloads. Nothing here knows of samples or order.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from pretrain_jobs.dataset.format.native import read_offsets, read_shard
from pretrain_jobs.dataset.manifest import ShardEntry
from pretrain_jobs.errors import DataError
from pretrain_jobs.objectives.packing import ShardLayout
from pretrain_jobs.objectives.pieces import TokenShard
from pretrain_jobs.storage import ObjectStore


@dataclass(frozen=True)
class ShardFiles:
    """The shards `entries` of the dataset at `store`, as files under `directory`."""

    store: ObjectStore
    entries: tuple[ShardEntry, ...]
    directory: Path

    def path(self, index: int) -> Path:
        """The shard's local file, downloaded if it is not there; DataError if it is damaged."""
        path = self.directory / self.entries[index].path
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path):
            if not path.exists():
                self._download(index, path)
        return path

    def verify(self, index: int) -> None:
        """Download the shard anew if its local file is not what the manifest says."""
        path = self.path(index)
        with path.open("rb") as stream:
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != self.entries[index].sha256:
            with _locked(path):
                self._download(index, path)

    def decode(self, index: int) -> TokenShard:
        """The shard's arrays."""
        shard = read_shard(self.path(index))
        layout = ShardLayout.of(shard.document_offsets, shard.sentence_offsets)
        return TokenShard(shard.tokens, shard.word_starts, layout.document_offsets)

    def layouts(self) -> Iterator[ShardLayout]:
        """The offsets of every shard in turn; each file is verified on the way."""
        for index in range(len(self.entries)):
            self.verify(index)
            yield ShardLayout.of(*read_offsets(self.path(index)))

    def _download(self, index: int, path: Path) -> None:
        """Replace the local file; other processes that read the old one are not disturbed."""
        entry = self.entries[index]
        found = self.store.download(entry.path, path)
        if found != entry.sha256:
            path.unlink()
            raise DataError(
                f"The shard {entry.path} under {self.store.uri} has SHA-256 {found}, but its"
                f" dataset's manifest says {entry.sha256}. Delete the dataset's manifest.json and"
                " run the job again to prepare it anew."
            )


class ShardCache:
    """Decoded shards, the last used ones up to a number of tokens; others are decoded on demand.

    One thread decodes, so a shard asked for ahead of its use costs the reader no wait.
    """

    def __init__(self, files: ShardFiles, capacity_tokens: int) -> None:
        """A cache that holds shards of `capacity_tokens` together, or one that is larger."""
        self._files = files
        self._capacity = capacity_tokens
        self._shards: OrderedDict[int, Future[TokenShard]] = OrderedDict()
        self._lock = Lock()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="shards")

    def shard(self, index: int) -> TokenShard:
        """The decoded shard; waits for it if need be."""
        return self._request(index).result()

    def prefetch(self, indexes: Iterable[int]) -> None:
        """Begin to decode shards that will be needed."""
        for index in indexes:
            self._request(index)

    def close(self) -> None:
        """Stop the thread and forget the shards."""
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._shards.clear()

    def _request(self, index: int) -> Future[TokenShard]:
        with self._lock:
            if index not in self._shards:
                self._shards[index] = self._thread.submit(self._files.decode, index)
            self._shards.move_to_end(index)
            self._evict()
            return self._shards[index]

    def _evict(self) -> None:
        """Forget the least recently used shards beyond the capacity, but never the last one."""
        held = sum(self._files.entries[index].tokens for index in self._shards)
        while held > self._capacity and len(self._shards) > 1:
            index, _ = self._shards.popitem(last=False)
            held -= self._files.entries[index].tokens


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock beside a file that this machine's processes honour; it ends with its process."""
    with path.with_name(path.name + ".lock").open("a") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield
