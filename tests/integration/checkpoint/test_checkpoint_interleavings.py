"""The commit protocol under every kind of bad luck: several attempts alive at once, each killed at
any request, every request of every rank delayed as long as can be.

The code is the product's own; only the store, the processes and the order of things are made. What
must hold at every instant and at the end is the promise that checkpoints make: none is resumed from
that is not whole, none is forgotten, no sample is skipped or repeated.
"""

import itertools
import os
import random
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_jobs.checkpoint import rounds
from pretrain_jobs.errors import InfrastructureError
from pretrain_testing.simulated_attempts import SimulatedRun
from pretrain_testing.turnstile import Actor, Killed, Turnstile

ATTEMPTS = 4
BURSTS = (1, 4, 16)
"""How many gates in a row one rank passes, on average; a history has one of these."""


def own_node(_attempt: int, rank: int) -> str:
    """A node for each rank."""
    return f"own-{rank}"


NODES: tuple[Callable[[int, int], str], ...] = (
    lambda _attempt, _rank: "",
    lambda _attempt, _rank: "one",
    own_node,
    lambda attempt, rank: f"moved-{(attempt + rank) % 3}",
)
"""Whose disk a rank leaves its saves on: nobody's, that of all, its own, or now this, now that."""

LONGEST = 5_000
"""Gates that are passed in one history before it counts as one that never ends."""


class Inline:
    """An executor that does everything at once, in the thread that asks."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def submit(self, function: Any, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except Exception as error:  # noqa: BLE001 - the future's to tell
            future.set_exception(error)
        return future

    def shutdown(self, **_: object) -> None:
        pass

    def __enter__(self) -> "Inline":
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def _without_threads_and_disks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "ThreadPoolExecutor", Inline)
    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)


def play(run: SimulatedRun, choice: random.Random) -> None:
    """Let attempts run, overlap and die as the choice falls, then one undisturbed to the end."""
    turnstile = run.turnstile
    run.begin_attempt()
    patience = choice.choice(BURSTS)
    mover: Actor | None = None
    for _ in range(LONGEST):
        waiting = turnstile.waiting()
        if not waiting and run.attempts >= ATTEMPTS:
            break
        fate = choice.random()
        if not waiting or (fate < 0.02 and run.attempts < ATTEMPTS):
            run.begin_attempt()
        elif fate < 0.04 and run.attempts < ATTEMPTS and turnstile.groups():
            turnstile.kill(choice.choice(turnstile.groups()))
        else:
            if mover not in waiting or choice.random() * patience < 1.0:
                mover = choice.choice(waiting)
            turnstile.let_pass(mover)
        assert not run.torn_files()
    else:
        raise AssertionError("this history never ends")


@settings(max_examples=40)
@given(seed=st.integers(0, 2**32))
def test_no_order_of_things_breaks_the_promise(
    seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    choice = random.Random(seed)
    node_of = choice.choice(NODES)
    run = SimulatedRun(Turnstile(), tmp_path_factory.mktemp("run"), node_of=node_of)

    play(run, choice)

    check(run)


def test_an_attempt_that_is_overtaken_anywhere_harms_no_other_wherever_that_stands(
    tmp_path: Path,
) -> None:
    """Both stop once: the old one before each request of all, the new one until it trains."""
    overlaps = 0
    for first in itertools.count():
        for second in itertools.count():
            run = SimulatedRun(Turnstile(), tmp_path / f"{first}-{second}", world_size=1, steps=2)
            old_left, new_trains = overlap(run, first=first, second=second)
            check(run)
            overlaps += 1
            if new_trains:
                break
        if not old_left:
            break
    assert overlaps > 300


def test_what_dies_anywhere_is_gone_on_with_from_the_newest_step_that_lies_whole_anywhere(
    tmp_path: Path,
) -> None:
    """After each request and each write to a disk; also what no object was uploaded of yet."""
    only_on_nodes = 0
    for moment in itertools.count(1):
        run = SimulatedRun(Turnstile(), tmp_path / f"{moment}", steps=2, node_of=own_node)
        lives = go_on(run, run.begin_attempt(), moment)
        run.turnstile.kill("attempt 1")
        whole, in_the_store = run.newest_whole(), {key[:14] for key in run.store.objects}
        only_on_nodes += whole > 0 and f"step-{whole:09d}" not in in_the_store
        go_on(run, run.begin_attempt(), LONGEST)
        check(run)
        assert run.starts[2].restored == whole
        if not lives:
            break
    assert only_on_nodes


def go_on(run: SimulatedRun, number: int, gates: int) -> bool:
    """Let the ranks of an attempt pass so many gates by turns; whether there are more."""
    for passed in range(gates):
        waiting = [a for a in run.turnstile.waiting() if a.group == f"attempt {number}"]
        if not waiting:
            return False
        run.turnstile.let_pass(waiting[passed % len(waiting)])
        assert not run.torn_files()
    return True


def overlap(run: SimulatedRun, *, first: int, second: int) -> tuple[bool, bool]:
    """Run the old attempt for `first` requests, the new one for `second`, then both to their ends.

    Whether the old one had requests left when it was stopped, and whether the new one trained.
    """
    old = run.begin_attempt()
    old_left = run.advance(old, first)
    new = run.begin_attempt()
    new_trains = not run.advance(new, second) or new in run.training
    for attempt in (old, new):
        run.advance(attempt, LONGEST)
    return old_left, new_trains


def check(run: SimulatedRun) -> None:
    """What must hold at the end of every history."""
    errors = [a.error for a in run.turnstile.actors if not isinstance(a.error, Killed | None)]
    assert all(isinstance(error, InfrastructureError) for error in errors), errors
    for start in run.starts.values():
        assert start.restored >= start.newest_commit
    assert run.finished
    assert run.newest_commit() == run.steps
