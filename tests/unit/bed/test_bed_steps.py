"""Steps that run side by side."""

import threading

import pytest
from bed.steps import Step, run_steps


def test_a_step_starts_once_those_it_needs_are_done():
    done: list[str] = []
    steps = [
        Step("roof", lambda: done.append("roof"), after=("walls",)),
        Step("walls", lambda: done.append("walls"), after=("ground",)),
        Step("ground", lambda: done.append("ground")),
    ]

    run_steps(steps)

    assert done == ["ground", "walls", "roof"]


def test_steps_that_need_nothing_of_each_other_run_at_once():
    meeting = threading.Barrier(2, timeout=30)

    run_steps([Step("left", meeting.wait), Step("right", meeting.wait)])

    assert not meeting.broken


def test_a_failed_step_fails_the_run_and_those_after_it_never_start():
    done: list[str] = []

    def fail() -> None:
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        run_steps([Step("first", fail), Step("second", lambda: done.append("second"), ("first",))])

    assert done == []


def test_a_step_that_needs_what_is_no_step_is_named():
    with pytest.raises(ValueError, match="roof"):
        run_steps([Step("roof", lambda: None, after=("walls",))])
