"""Slices killed, interrupted, run twice and run at once leave the same dataset; about 20 s."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
from pretrain_api.spec.preprocess import PreprocessSpec
from pretrain_jobs.corpus import completion, slice_run, stage
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_testing.corpora import PreprocessJob, json_lines, wordpiece
from pretrain_testing.fork_server import CONTEXT, preload
from pretrain_testing.slice_processes import TOLD_FULL, fill_disk, run_slice

HAN = "乌鲁木齐是城市中华人民共和国成立研究生命的起源很忙好坏一二三四五六七八九十"
TEXTS = ["".join(random.Random(n).choices(HAN + "，。", k=200)) for n in range(400)]
TOKENIZER = wordpiece([*HAN, "，", "。"])

POLL_SECONDS = 0.001
preload("pretrain_jobs.corpus.stage")


def start(job: PreprocessJob, index: int) -> BaseProcess:
    process = CONTEXT.Process(target=run_slice, args=(job.config_path, index))
    process.start()
    return process


def run_all(job: PreprocessJob, slices: int, *, at_once: int) -> None:
    for first in range(0, slices, at_once):
        running = [start(job, i) for i in range(first, min(first + at_once, slices))]
        for process in running:
            process.join()
            assert process.exitcode == 0


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> PreprocessJob:
    """A job of six slices with several shards each, prepared one after another."""
    job = PreprocessJob(
        tmp_path_factory.mktemp("job"),
        slice_bytes=-(-len(json_lines(TEXTS)) // 6),
        preprocess=PreprocessSpec(shard_size=4000),
        validation_fraction=0.1,
        corpus={},
    )
    bad = json_lines(TEXTS[:200]) + b"{\n" + json_lines(TEXTS[200:])
    job.write({"a.jsonl": bad})
    assert len(job.lay_out(TOKENIZER).slices) == 6
    run_all(job, 6, at_once=1)
    return job


@pytest.mark.parametrize("at_once", [2, 4])
def test_any_parallelism_gives_the_same_bytes(whole: PreprocessJob, at_once: int) -> None:
    job = whole.into(f"parallel-{at_once}")
    job.lay_out()

    run_all(job, 6, at_once=at_once)

    assert job.content() == whole.content()


def test_any_order_of_slices_gives_the_same_bytes(
    whole: PreprocessJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = whole.into("backwards")
    job.lay_out()

    for index in (5, 3, 4, 0, 2, 1):
        assert job.manifest() is None
        run_slice(job.config_path, index)

    assert job.content() == whole.content()


def test_the_same_slice_twice_at_once_is_harmless(whole: PreprocessJob) -> None:
    job = whole.into("twice")
    job.lay_out()

    running = [start(job, 0), start(job, 0)]
    for process in running:
        process.join()
    run_all(job, 6, at_once=2)

    assert [process.exitcode for process in running] == [0, 0]
    assert job.content() == whole.content()


def written(job: PreprocessJob) -> set[tuple[str, int]]:
    """The dataset's files, each new version another item."""
    found = set()
    for entry in job.dataset_directory.rglob("*"):
        with suppress(FileNotFoundError):
            found.add((entry.name, entry.stat().st_ino))
    return found


def kill_after(job: PreprocessJob, process: BaseProcess, *, writes: int) -> bool:
    """SIGKILL a slice's process after so many writes; whether it lived that long."""
    before, seen = written(job), set[tuple[str, int]]()
    while process.is_alive():
        seen |= written(job) - before
        if len(seen) >= writes:
            process.kill()
            break
        time.sleep(POLL_SECONDS)
    process.join()
    return process.exitcode == -signal.SIGKILL


def test_twenty_kills_leave_the_dataset_of_an_unbroken_run(whole: PreprocessJob) -> None:
    job = whole.into("killed")
    job.lay_out()
    seeded = random.Random(1)

    kills = 0
    for _ in range(20):
        undone = [index for index in range(6) if not slice_done(job, index)] or [0]
        process = start(job, seeded.choice(undone))
        kills += kill_after(job, process, writes=seeded.randrange(1, 9))
    run_all(job, 6, at_once=2)

    assert kills >= 3
    assert job.content() == whole.content()


def slice_done(job: PreprocessJob, index: int) -> bool:
    return (job.dataset_directory / "slices" / f"{index:05d}.json").exists()


def test_slices_that_are_done_are_not_made_again(whole: PreprocessJob) -> None:
    job = whole.into("resumed")
    job.lay_out()
    for index in range(3):
        run_slice(job.config_path, index)
    before = {p: p.stat().st_mtime_ns for p in (job.dataset_directory / "shards").iterdir()}

    run_all(job, 6, at_once=2)

    assert {path: path.stat().st_mtime_ns for path in before} == before
    manifest = job.manifest()
    assert manifest is not None
    assert manifest.statistics == whole.manifest().statistics  # type: ignore[union-attr]
    assert manifest.statistics.documents_read == 401


class Interrupted(BaseException):
    """Stands for the end of the process."""


class InterruptedStore:
    """A store whose process ends before or after its n-th write."""

    def __init__(
        self, store: ObjectStore, writes: Iterator[int], last: int, *, after: bool
    ) -> None:
        self._store = store
        self._writes = writes
        self._last = last
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def write(self, *arguments: Any, **options: Any) -> Any:
        return self._interrupted(self._store.write, *arguments, **options)

    def upload(self, *arguments: Any, **options: Any) -> Any:
        return self._interrupted(self._store.upload, *arguments, **options)

    def _interrupted(self, act: Any, *arguments: Any, **options: Any) -> Any:
        reached = next(self._writes) >= self._last
        if reached and not self._after:
            raise Interrupted
        result = act(*arguments, **options)
        if reached:
            raise Interrupted
        return result


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_an_end_at_any_write_leaves_nothing_that_counts_and_nothing_lost(
    tmp_path: Path, after: bool
) -> None:
    job = PreprocessJob(tmp_path, preprocess=PreprocessSpec(shard_size=3000))
    job.write({"a.jsonl": json_lines(TEXTS[:60]) + b"{\n"})
    job.lay_out(TOKENIZER)
    run_slice(job.config_path, 0)
    sound = job.content()

    for last in range(100):
        broken = job.into(f"broken-{after}-{last}")
        broken.lay_out()
        ended = not interrupt(broken, last, after=after)
        if not after or ended:
            assert ended == (broken.manifest() is not None)
        run_slice(broken.config_path, 0)
        assert broken.content() == sound
        if ended:
            break

    assert last > 8


def interrupt(job: PreprocessJob, last: int, *, after: bool) -> bool:
    """Run the slice up to its write number `last`; whether there was one."""
    writes = iter(range(1000))

    def open_interrupted(*arguments: Any) -> InterruptedStore:
        return InterruptedStore(open_store(*arguments), writes, last, after=after)

    with pytest.MonkeyPatch.context() as patch:
        for module in (stage, slice_run, completion):
            patch.setattr(module, "open_store", open_interrupted)
        try:
            run_slice(job.config_path, 0)
        except Interrupted:
            return True
    return False


def test_a_full_disk_is_told_and_cleaned_up(whole: PreprocessJob, tmp_path: Path) -> None:
    job = whole.into("full")
    job.lay_out()
    run_slice(job.config_path, 0)
    before = job.content()

    process = CONTEXT.Process(target=fill_disk, args=(job.config_path, tmp_path))
    process.start()
    process.join()

    assert process.exitcode == TOLD_FULL
    assert list(tmp_path.iterdir()) == []
    assert {k: v for k, v in job.content().items() if k in before} == before
    assert not slice_done(job, 5)
