"""Shards on this machine: downloaded once for all processes, decoded a few at a time."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import ObjectStore
from pretrain_jobs.train.shards import ShardCache, ShardFiles
from pretrain_testing.token_datasets import commit_token_dataset

TRAIN = [[[10]], [[20]], [[30]], [[40]]]


class CountingStore:
    """A store that remembers what was downloaded from it."""

    def __init__(self, store) -> None:
        self.store = store
        self.uri = store.uri
        self.downloads: list[str] = []

    def download(self, key: str, path: Path) -> str:
        self.downloads.append(key)
        return self.store.download(key, path)


@pytest.fixture
def files(tmp_path: Path) -> ShardFiles:
    store, manifest = commit_token_dataset(tmp_path, train=TRAIN)
    counting = cast("ObjectStore", CountingStore(store))
    return ShardFiles(counting, manifest.shards("train"), tmp_path / "cache")


def test_processes_that_share_a_directory_download_a_shard_once(files):
    others = [replace(files) for _ in range(6)]

    with ThreadPoolExecutor(6) as pool:
        lengths = list(pool.map(lambda each: len(each.decode(2).tokens), others))

    assert lengths == [30] * 6
    assert files.store.downloads == [files.entries[2].path]


def test_the_least_recently_used_shard_makes_room(files):
    cache = ShardCache(files, capacity_tokens=40)

    ten, twenty = cache.shard(0), cache.shard(1)
    assert cache.shard(0) is ten
    thirty = cache.shard(2)

    assert cache.shard(0) is ten
    assert cache.shard(2) is thirty
    assert cache.shard(1) is not twenty
    assert cache.shard(1).tokens.tolist() == twenty.tokens.tolist()
    cache.close()


def test_a_shard_asked_for_ahead_is_the_one_that_is_used(files):
    cache = ShardCache(files, capacity_tokens=100)

    cache.prefetch([2, 1])
    cache.shard(2)
    cache.shard(1)
    cache.close()

    assert files.store.downloads == [files.entries[2].path, files.entries[1].path]


def test_a_shard_larger_than_the_capacity_is_held_alone(files):
    cache = ShardCache(files, capacity_tokens=5)

    large = cache.shard(3)

    assert cache.shard(3) is large
    assert cache.shard(0) is not None
    assert cache.shard(3) is not large
    cache.close()


def test_a_damaged_shard_stops_whoever_waits_for_it(files):
    path = files.path(1)
    path.write_bytes(b"no HDF5")
    cache = ShardCache(files, capacity_tokens=100)

    with pytest.raises(DataError, match=path.name):
        cache.shard(1)
    cache.close()
