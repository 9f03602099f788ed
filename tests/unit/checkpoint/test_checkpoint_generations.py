"""Generations: claimed once each, also where the store ignores conditions."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint.generations import Generation, claim, newest, require_newest
from pretrain_jobs.errors import InfrastructureError, StorageRefusedError
from pretrain_jobs.storage import ObjectInfo, ObjectStore, open_store


def store_in(directory: Path) -> ObjectStore:
    return open_store(StorageSpec(uri=f"file://{directory}"))


class Wrapped:
    """A store with some methods replaced."""

    def __init__(self, store: ObjectStore, **replaced: Any) -> None:
        self._store = store
        self._replaced = replaced

    def __getattr__(self, name: str) -> Any:
        return self._replaced.get(name, getattr(self._store, name))


def test_each_attempt_claims_the_next_number(tmp_path: Path) -> None:
    store = store_in(tmp_path)

    numbers = [claim(store, attempt=f"{n:032x}", lineage="a").number for n in range(3)]

    assert numbers == [1, 2, 3]


def test_attempts_that_start_at_once_claim_different_numbers(tmp_path: Path) -> None:
    store = store_in(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda n: claim(store, attempt=f"{n:032x}", lineage="a"), range(16)))

    assert sorted(found.number for found in claims) == list(range(1, 17))


def test_an_older_attempt_stops_when_a_newer_one_has_claimed(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    old = claim(store, attempt="1" * 32, lineage="a")
    require_newest(store, old)
    claim(store, attempt="2" * 32, lineage="a")

    with pytest.raises(InfrastructureError, match="was replaced by generation 2"):
        require_newest(store, old)


def test_a_store_that_ignores_conditions_still_lets_one_attempt_win(tmp_path: Path) -> None:
    store = store_in(tmp_path)

    def write(key: str, data: bytes, *, if_absent: bool = False) -> ObjectInfo:
        info = store.write(key, data)
        if json.loads(data)["attempt"] == "1" * 32 and newest(store) == 1:
            store.write(key, json.dumps({"attempt": "2" * 32}).encode())
        return info

    blind: Any = Wrapped(store, write=write)

    loser = claim(blind, attempt="1" * 32, lineage="a")

    assert loser == Generation(2, "1" * 32)
    with pytest.raises(InfrastructureError, match="was replaced"):
        require_newest(blind, Generation(1, "1" * 32))


def test_a_store_that_refuses_to_list_is_never_read_as_having_none(tmp_path: Path) -> None:
    def refuse(prefix: str = "") -> Any:
        raise StorageRefusedError("403")

    refusing: Any = Wrapped(store_in(tmp_path), list=refuse)

    with pytest.raises(StorageRefusedError):
        claim(refusing, attempt="1" * 32, lineage="a")
