"""When a checkpoint is due by the clock, which rank 0 alone decides; what a failure is told."""

from dataclasses import dataclass
from typing import Any

import pytest
from pretrain_api.spec.lifecycle import CheckpointSpec
from pretrain_jobs.errors import PreemptedError
from pretrain_jobs.train.keeper import Keeper
from pretrain_testing.plan_simulator import commit


@dataclass
class Alone:
    """As much of a saver as the question needs."""

    rank: int

    pending = False
    latest = commit(400)

    @property
    def group(self) -> Any:
        return self

    @property
    def writer(self) -> Any:
        return self

    def start(self) -> None:
        """There is nothing to start."""

    def close(self, *, tidily: bool) -> None:
        """There is nothing to end."""


class Clock:
    """A clock that is moved by hand."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def keeper(clock: Clock, *, rank: int = 0, **spec: int) -> Keeper:
    saver: Any = Alone(rank)
    return Keeper(CheckpointSpec(**spec), saver, clock)


def test_a_save_is_due_when_the_minutes_are_over() -> None:
    clock = Clock()
    kept = keeper(clock, every_minutes=5)

    clock.now += 299
    assert not kept.time_is_up()
    clock.now += 1
    assert kept.time_is_up()


def test_other_ranks_clocks_do_not_count() -> None:
    clock = Clock()
    kept = keeper(clock, rank=1, every_minutes=5)
    clock.now += 10_000

    assert not kept.time_is_up()


def test_steps_and_minutes_are_independent() -> None:
    clock = Clock()
    by_steps = keeper(clock, every_steps=20)
    clock.now += 10_000

    assert not by_steps.time_is_up()
    assert [step for step in range(1, 61) if by_steps.is_due(step)] == [20, 40, 60]
    assert not keeper(clock, every_minutes=5).is_due(20)


def test_a_failure_that_ends_training_is_told_the_newest_commit() -> None:
    with pytest.raises(PreemptedError) as stopped, keeper(Clock(), every_steps=20):
        raise PreemptedError("stopped by SIGTERM after step 400")

    assert stopped.value.checkpoint == commit(400)
