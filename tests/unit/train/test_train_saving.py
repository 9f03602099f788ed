"""Saves beside the steps of three ranks: settled by flags that the steps reduce anyway."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from pretrain_api.reports import CheckpointStatus
from pretrain_api.spec.lifecycle import CheckpointSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.generations import Generation, claim
from pretrain_jobs.checkpoint.orders import Lineage
from pretrain_jobs.checkpoint.save import Saver, SaveResult
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.errors import InfrastructureError, StorageUnavailableError
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.keeper import Keeper
from pretrain_jobs.train.optimize import Wishes
from pretrain_jobs.train.saving import Saving, what_is_saved
from pretrain_jobs.train.state import Progress
from pretrain_testing.thread_ranks import ThreadRank, run_threads
from pretrain_testing.thread_writers import ThreadWriter
from pretrain_testing.toy_checkpoints import ToyEngine

RANKS = 3


class HinderedStore:
    """A store that calls `before` with the key of each upload."""

    def __init__(self, store: ObjectStore, before: Callable[[str], None]) -> None:
        self._store = store
        self._before = before

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def upload(self, path: Path, key: str) -> None:
        self._before(key)
        self._store.upload(path, key)


@dataclass
class Told:
    """What the metrics of a rank hear."""

    stalls: int = 0
    sizes: list[int] = field(default_factory=list)

    def stalled(self, seconds: float) -> None:
        assert seconds == 0.0
        self.stalls += 1

    def saved(self, seconds: float, *, size: int) -> None:
        assert seconds >= 0.0
        self.sizes.append(size)


@dataclass
class Run:
    """One rank's steps."""

    rank: ThreadRank
    saving: Saving
    told: Told
    number: int = 0

    @property
    def saver(self) -> Saver:
        return self.saving.keeper.saver

    def begin(self) -> None:
        self.saving.begin(Progress(step=self.number, cursor=Cursor("toy", 1, 10)))

    def step(self) -> None:
        """Reduce what the ranks wish, update, and settle what has ended."""
        wishes = self.rank.gather(astuple(self.saving.wishes(stop=False)))
        self.saving.before_update()
        self.number += 1
        self.saving.after_step(Wishes(*map(any, zip(*wishes, strict=True))))

    def settle(self) -> None:
        while self.saver.pending:
            self.step()


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(StorageSpec(uri=f"file://{tmp_path}/store"))


def run(
    directory: Path, store: Any, train: Callable[[Run], Any], *, newer_attempt: bool = False
) -> list[Any]:
    generation = claim(store, attempt="ab" * 16, lineage="own")
    if newer_attempt:
        claim(store, attempt="cd" * 16, lineage="own")
    return run_threads(lambda rank: train(make_run(directory, store, generation, rank)), RANKS)


def make_run(directory: Path, store: Any, generation: Generation, rank: ThreadRank) -> Run:
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
    told, keeper = Told(), Keeper(CheckpointSpec(), saver, lambda: 0.0)
    saving = Saving(keeper, Goodput(lambda: 0.0), cast("Any", told), telemetry=None)
    return Run(rank, saving, told)


def test_steps_go_on_until_all_ranks_have_stored_their_files_and_then_all_know(
    tmp_path: Path, store: ObjectStore
) -> None:
    three_steps_were_made = Event()

    def hold(key: str) -> None:
        assert "rank-00001/" not in key or three_steps_were_made.wait(60)

    def train(own: Run) -> tuple[bool, int]:
        own.begin()
        for _ in range(3):
            own.step()
        pending = own.saver.pending
        own.begin()
        three_steps_were_made.set()
        own.settle()
        own.saver.close(tidily=True)
        assert own.saver.latest is not None
        assert own.saver.latest.step == 0
        assert own.told.stalls == len(own.told.sizes) == 1
        return pending, own.saving.keeper.skipped

    assert run(tmp_path, HinderedStore(store, hold), train) == [(True, 1)] * RANKS


def test_a_rank_that_fails_ends_the_wait_for_it_and_the_next_save_is_made(
    tmp_path: Path, store: ObjectStore
) -> None:
    def refuse(key: str) -> None:
        if key.startswith("step-000000000/") and "rank-00002/" in key:
            raise StorageUnavailableError(f"{key} cannot be written today")

    def train(own: Run) -> tuple[int, int]:
        own.begin()
        own.step()
        own.settle()
        assert (own.saver.failure_of_this_rank() is None) == (own.rank.rank < 2)
        saved_at, failures = own.number, own.saver.failures
        own.begin()
        own.settle()
        own.saver.close(tidily=True)
        assert own.saver.latest is not None
        assert own.saver.latest.step == saved_at
        return failures, own.saver.failures

    assert run(tmp_path, HinderedStore(store, refuse), train) == [(1, 1)] * RANKS


def test_an_attempt_that_was_replaced_hears_of_it_at_a_step_on_every_rank(
    tmp_path: Path, store: ObjectStore
) -> None:
    def train(own: Run) -> str:
        own.begin()
        with pytest.raises(InfrastructureError) as raised:
            own.settle()
        own.saver.close(tidily=True)
        return str(raised.value)

    messages = run(tmp_path, store, train, newer_attempt=True)

    assert messages == [messages[0]] * RANKS
    assert "was replaced by generation 2" in messages[0]


AT_4 = CheckpointStatus(step=4, uri="file:///c", sha256="0", time=datetime(2026, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    ("latest", "result", "told"),
    [
        (None, None, "nothing saved"),
        (AT_4, None, "the checkpoint of step 4 is committed"),
        (AT_4, SaveResult(4, AT_4, kept=True), "the checkpoint of step 4 is committed"),
        (AT_4, SaveResult(6, None, "refused"), "the checkpoint of step 4 is committed"),
        (
            AT_4,
            SaveResult(6, None, "refused", kept=True),
            "all files of step 6 are left on the nodes, not committed",
        ),
    ],
)
def test_a_run_that_is_stopped_tells_what_the_next_attempt_finds(
    latest: CheckpointStatus | None, result: SaveResult | None, told: str
) -> None:
    assert what_is_saved(latest, result) == told
