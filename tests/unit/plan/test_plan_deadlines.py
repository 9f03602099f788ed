"""Deadlines and the time to live: what counts as time, and what happens when it is over."""

from datetime import timedelta
from typing import Any

import pytest
from pretrain_api.status import Phase
from pretrain_testing.plan_simulator import START, Simulation, make_job


def training(**spec: Any) -> Simulation:
    sim = Simulation(make_job(**spec))
    sim.until("train")
    return sim


def test_the_active_deadline_fires_without_any_event() -> None:
    sim = training(activeDeadlineSeconds=30)

    assert sim.plan().requeue_after == 30
    sim.wait(30)

    assert sim.condition("Failed").reason == "DeadlineExceeded"
    assert sim.child_names("train") == []


@pytest.mark.parametrize("stage", ["tokenizer", "preprocess", "evaluate", "export"])
def test_the_active_deadline_holds_in_every_stage(stage: str) -> None:
    sim = Simulation(make_job(activeDeadlineSeconds=30))
    sim.until(stage)  # type: ignore[arg-type]

    sim.wait(31)

    assert sim.condition("Failed").reason == "DeadlineExceeded"


def test_waiting_for_pods_is_no_active_time() -> None:
    sim = Simulation(make_job(activeDeadlineSeconds=600))
    sim.settle()
    sim.wait(1200)

    sim.run("tokenizer")
    sim.wait(300)

    assert sim.phase() is Phase.TOKENIZING
    assert sim.job.status.start_time == START + timedelta(seconds=1200)


def test_suspended_time_is_no_active_time() -> None:
    sim = training(activeDeadlineSeconds=600)
    sim.suspend(on=True)
    sim.wait(3600)

    sim.suspend(on=False)
    sim.run("train")
    assert sim.job.status.suspended_seconds == 3600
    assert sim.phase() is Phase.TRAINING

    sim.wait(600)
    assert sim.condition("Failed").reason == "DeadlineExceeded"


def test_the_pending_deadline_ends_a_gang_that_is_not_whole() -> None:
    sim = training(pendingDeadlineSeconds=60)
    text = "0/2 nodes are available: Insufficient nvidia.com/gpu"
    sim.change_pod("train", 1, phase="Pending", reason="Unschedulable", message=text)

    sim.wait(59)
    assert text in sim.job.status.blocked_by
    sim.wait(1)

    failed = sim.condition("Failed")
    assert failed.reason == "PendingDeadlineExceeded"
    assert "Rank 1" in failed.message
    assert sim.child_names("train") == []


def test_a_gang_that_is_whole_is_not_pending() -> None:
    sim = training(pendingDeadlineSeconds=60)

    sim.wait(3600)

    assert sim.phase() is Phase.TRAINING


def test_a_finished_job_expires_after_its_time_to_live() -> None:
    sim = Simulation(make_job(ttlSecondsAfterFinished=60))
    sim.until("export")
    sim.succeed("export")

    assert sim.plan().requeue_after == 60
    assert not sim.plan().expired
    sim.now += timedelta(seconds=60)
    assert sim.plan().expired


def test_a_job_without_a_time_to_live_stays() -> None:
    sim = Simulation(make_job())
    sim.until("export")
    sim.succeed("export")

    sim.now += timedelta(days=1000)

    made = sim.plan()
    assert not made.expired
    assert made.requeue_after is None
