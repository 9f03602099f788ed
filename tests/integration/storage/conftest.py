"""The stores that the conformance suite runs against."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_jobs.storage.s3 import S3Store
from pretrain_jobs.storage.s3_client import renew_clients
from pretrain_testing.s3 import S3Server
from pretrain_testing.s3_faults import FaultyServer, faulty, store_at

BUCKET = "tests"
_numbers = itertools.count()

MakeStore = Callable[[str], ObjectStore]


@pytest.fixture
def weed_storage(weed: S3Server, monkeypatch: pytest.MonkeyPatch) -> StorageSpec:
    """An empty prefix on SeaweedFS, its credentials in the environment."""
    return fresh_storage(weed, monkeypatch)


@pytest.fixture(params=["file", "weed", "rclone"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which store: a directory, SeaweedFS, or rclone."""
    return str(request.param)


@pytest.fixture
def storage(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StorageSpec:
    """An empty storage of each kind in turn."""
    if kind == "file":
        return StorageSpec(uri=(tmp_path / "store").as_uri())
    return fresh_storage(request.getfixturevalue(kind), monkeypatch)


@pytest.fixture
def store(storage: StorageSpec) -> ObjectStore:
    """A store rooted two levels below the top of an empty storage."""
    return open_store(storage, "jobs/demo")


@pytest.fixture
def proxy(weed: S3Server, weed_storage: StorageSpec) -> Iterator[FaultyServer]:
    """A proxy before SeaweedFS that fails what it is told to."""
    with faulty(weed) as running:
        yield running


@pytest.fixture
def behind(proxy: FaultyServer, weed_storage: StorageSpec) -> S3Store:
    """A store behind the proxy, with small parts."""
    return store_at(proxy.server.endpoint_url, weed_storage)


@pytest.fixture
def direct(weed_storage: StorageSpec) -> ObjectStore:
    """The same store without the proxy."""
    return open_store(weed_storage)


def fresh_storage(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> StorageSpec:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    renew_clients()
    return server.storage(BUCKET, f"test-{next(_numbers)}")
