"""Workers that are taken from a gang: the others end with it, and what was said stays told."""

from __future__ import annotations

from typing import Any

import pytest
from pretrain_api.status import Phase
from pretrain_testing.plan_simulator import Simulation, make_job

SAID = "ValueError: bad head size"


def gang(size: int = 8, **spec: Any) -> Simulation:
    """A job whose gang trains."""
    sim = Simulation(job=make_job(workers={"replicas": size}, **spec))
    sim.until("train")
    return sim


@pytest.mark.parametrize(
    ("reason", "exit_code", "verdict"),
    [("", 1, "Unknown"), ("Evicted", None, "Infrastructure")],
)
def test_survivors_of_a_rank_that_may_not_be_tried_again_are_ended_at_once(
    reason: str, exit_code: int | None, verdict: str
) -> None:
    sim = gang(failurePolicy={"restarts": [{"cause": verdict, "limit": 0}]})

    sim.change_pod(
        "train",
        1,
        phase="Failed",
        reason=reason,
        exit_code=exit_code,
        message=SAID,
        finished_at=sim.now,
    )
    sim.settle()
    sim.wait(30)

    assert sim.child_names("train") == []
    assert sim.condition("Failed").reason == verdict
    assert "Rank 1" in sim.job.status.blocked_by
    assert SAID in sim.job.status.blocked_by


def test_a_rank_0_that_vanished_while_nobody_looked_costs_one_restart() -> None:
    sim = gang(2, failurePolicy={"backoff": {"initialSeconds": 10}})
    sim.progress(450, committed=400)

    sim.change("train", pods=sim.child("train").pods[1:], condition="FailureTarget", failed=1)
    sim.plan()
    assert sim.phase() is not Phase.TRAINING
    sim.wait(300)

    assert sim.child("train").attempt == 1
    assert sum(sim.job.status.restarts.values()) == 1
    assert sim.phase() is Phase.PENDING


def test_a_gang_that_lost_rank_0_without_a_word_of_its_job_is_not_training() -> None:
    sim = gang(2)

    sim.change("train", pods=sim.child("train").pods[1:])
    sim.settle()

    assert sim.phase() is not Phase.TRAINING
    assert sim.condition("Running").status == "False"
