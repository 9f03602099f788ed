"""A save by several ranks that are slow or fail, over a store that remembers every write."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.generations import Generation, claim
from pretrain_jobs.checkpoint.layout import LATEST, CheckpointKey, group_keys
from pretrain_jobs.checkpoint.manifest import decode_commit
from pretrain_jobs.checkpoint.orders import Lineage
from pretrain_jobs.checkpoint.save import Saver
from pretrain_jobs.errors import StorageUnavailableError
from pretrain_jobs.storage import ObjectInfo, ObjectStore, open_store
from pretrain_testing.thread_ranks import ThreadRank, run_threads
from pretrain_testing.thread_writers import ThreadWriter
from pretrain_testing.toy_checkpoints import ToyEngine

RANKS = 3


class WatchedStore:
    """A store that calls `before` with the key of each write and upload, then remembers the key."""

    def __init__(self, store: ObjectStore, before: Callable[[str], None]) -> None:
        self._store = store
        self._before = before
        self.written: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, key: str, data: bytes, *, if_absent: bool = False) -> ObjectInfo:
        self._before(key)
        info = self._store.write(key, data, if_absent=if_absent)
        self.written.append(key)
        return info

    def upload(self, path: Path, key: str, **options: Any) -> ObjectInfo:
        self._before(key)
        info = self._store.upload(path, key, **options)
        self.written.append(key)
        return info


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(StorageSpec(uri=f"file://{tmp_path}/store"))


def save_steps(
    directory: Path, store: Any, generation: Generation, rank: ThreadRank, steps: list[int]
) -> list[str]:
    """Save these steps on one rank; the failure of each, or nothing."""
    saver = Saver(
        store=store,
        group=rank,
        generation=generation,
        lineage=Lineage("own", zero_stage=1, versions={}),
        engine=ToyEngine(rank.rank),
        scratch=directory / "scratch",
        failpoints=Failpoints(),
        writer=ThreadWriter(store),
    )
    failures = [save(saver, step) for step in steps]
    saver.close(tidily=True)
    return failures


def save(saver: Saver, step: int) -> str:
    """Save a step and wait for the end; the failure, or nothing."""
    saver.begin(step, trainer={"step": step}, rank_state={"rank": saver.group.rank})
    return saver.finish().failure


def run(directory: Path, store: ObjectStore, watched: Any, steps: list[int]) -> list[list[str]]:
    generation = claim(store, attempt="ab" * 16, lineage="own")
    return run_threads(lambda rank: save_steps(directory, watched, generation, rank, steps), RANKS)


def committed(store: ObjectStore) -> list[int]:
    listing = group_keys(info.key for info in store.list("step-"))
    return sorted(listed.key.step for listed in listing if listed.committed)


def test_commit_waits_for_the_slowest_rank(tmp_path: Path, store: ObjectStore) -> None:
    others_are_done = Event()

    def slow_on_rank_1(key: str) -> None:
        if key.endswith("ranks/00002.json"):
            others_are_done.set()
        if "rank-00001/" in key:
            assert others_are_done.wait(60)

    watched = WatchedStore(store, slow_on_rank_1)
    failures = run(tmp_path, store, watched, [1])

    assert failures == [[""]] * RANKS
    [listed] = group_keys(info.key for info in store.list("step-"))
    commit = watched.written.index(listed.key.commit)
    assert {*watched.written[:commit], listed.key.commit} == set(listed.keys)
    assert watched.written[commit:] == [listed.key.commit, LATEST]


def test_ranks_that_save_at_the_same_time_never_touch_each_others_files(
    tmp_path: Path, store: ObjectStore
) -> None:
    steps = list(range(1, 6))

    failures = run(tmp_path, store, WatchedStore(store, lambda _: None), steps)

    assert failures == [[""] * len(steps)] * RANKS
    assert committed(store) == steps
    for listed in group_keys(info.key for info in store.list("step-")):
        for manifest in decode_commit(store.read(listed.key.commit), listed.key).ranks:
            keys = [listed.key.rank_file(manifest.rank, file.name) for file in manifest.files]
            sizes = [store.head(key).size for key in keys]
            assert sizes == [file.size for file in manifest.files]
    assert not any(tmp_path.glob("scratch/*"))


@pytest.mark.parametrize("broken", ["rank-00002/", "ranks/00001.json", "COMMIT"])
def test_a_save_that_fails_anywhere_leaves_the_commit_before_and_the_hint_to_it(
    tmp_path: Path, store: ObjectStore, broken: str
) -> None:
    def refuse(key: str) -> None:
        if key.startswith("step-000000002/") and broken in key:
            raise StorageUnavailableError(f"{key} cannot be written today")

    failures = run(tmp_path, store, WatchedStore(store, refuse), [1, 2])

    assert failures == [failures[0]] * RANKS
    assert failures[0][0] == ""
    assert "cannot be written today" in failures[0][1]
    assert committed(store) == [1]
    assert json.loads(store.read(LATEST))["step"] == 1
    left = any(info.key.startswith("step-000000002/") for info in store.list("step-"))
    assert left == (broken == "COMMIT"), "without a mark in its place nothing may be deleted"


class StuckWriter(ThreadWriter):
    """A writer that never tells an outcome, and notes what it is asked for."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.asked: list[str] = []

    def outcome(self, seconds: float) -> None:
        assert seconds >= 0

    def give_up(self, key: CheckpointKey) -> None:
        self.asked.append(f"give up step {key.step}")

    def end(self) -> None:
        self.asked.append("end")


@pytest.mark.parametrize(("patience", "ends"), [(3600.0, []), (0.0, ["end"])])
def test_a_writer_hears_once_that_nobody_waits_and_is_ended_when_it_is_stuck(
    tmp_path: Path, store: ObjectStore, patience: float, ends: list[str]
) -> None:
    generation = claim(store, attempt="ab" * 16, lineage="own")

    def ask(rank: ThreadRank) -> list[str]:
        writer = StuckWriter(store)
        saver = Saver(
            store=store,
            group=rank,
            generation=generation,
            lineage=Lineage("own", zero_stage=1, versions={}),
            engine=ToyEngine(rank.rank),
            scratch=tmp_path / "scratch",
            failpoints=Failpoints(),
            writer=writer,
            patience_seconds=patience,
        )
        saver.begin(1, trainer={}, rank_state={})
        saver.copied()
        for _ in range(3):
            saver.give_up()
        saver.close(tidily=False)
        return writer.asked

    asked = run_threads(ask, 2)

    assert [sorted(of_rank) for of_rank in asked] == [[*ends, "give up step 1"], []]
