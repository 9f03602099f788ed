"""How often an attempt may fail: budgets by cause, and restarts that bring nothing forward."""

from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_api.status import Phase
from pretrain_testing.plan_simulator import Simulation, make_job


def training(**spec: Any) -> Simulation:
    """A job whose gang runs."""
    sim = Simulation(make_job(**spec))
    sim.until("train")
    return sim


def budgets(*, no_progress: int = 3, **limits: int) -> dict[str, object]:
    return {
        "restarts": [{"cause": cause, "limit": limit} for cause, limit in limits.items()],
        "noProgressRestarts": no_progress,
    }


def restart(sim: Simulation, **pod: object) -> None:
    """One rank is lost, and the next attempt runs if there is one."""
    sim.fail_pod("train", 1, **pod)
    sim.wait(3600)
    if sim.phase() is not Phase.FAILED:
        sim.run("train")


@pytest.mark.parametrize("code", [64, 65, 74])
def test_what_cannot_succeed_is_not_tried_again(code: int) -> None:
    sim = training()

    sim.fail_pod("train", 1, exit_code=code, message="line 1\nline 2")

    assert sim.phase() is Phase.FAILED
    assert sim.job.status.restarts == {}
    assert "line 2" in sim.job.status.blocked_by
    assert sim.condition("Running").status == "False"
    assert [job.stage for job in sim.observed.jobs] == ["tokenizer", "preprocess"]


def test_a_report_may_forbid_a_retry_that_its_cause_would_allow() -> None:
    sim = training()

    sim.report_failure(
        "train", 1, Cause.STORAGE_UNAVAILABLE, retryable=False, message="access denied"
    )

    assert sim.condition("Failed").reason == "StorageUnavailable"
    assert sim.job.status.restarts == {}


DENIED = {"retryable": False, "mendable": True, "message": "refused (403); check the credentials"}


def test_credentials_that_are_refused_are_waited_for_and_the_same_job_goes_on() -> None:
    sim = training(failurePolicy={"backoff": {"initialSeconds": 10, "maximumSeconds": 300}})
    sim.progress(450, committed=400)
    for wait in (10, 20, 40):
        sim.report_failure("train", 1, Cause.STORAGE_UNAVAILABLE, **DENIED)
        assert sim.plan().requeue_after == wait
        assert "check the credentials" in sim.job.status.blocked_by
        assert not sim.child_names("train")
        sim.wait(wait)
        sim.run("train")

    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.restarts == {"StorageUnavailable": 3}
    assert sim.job.status.attempt_start_step == 400


def test_credentials_that_stay_refused_end_the_job_after_half_an_hour() -> None:
    sim = training()
    began = sim.now

    while sim.phase() is not Phase.FAILED:
        sim.report_failure("train", 0, Cause.STORAGE_UNAVAILABLE, **DENIED)
        if sim.phase() is not Phase.FAILED:
            sim.wait(sim.plan().requeue_after or 0)
            sim.run("train")

    assert sim.condition("Failed").reason == "StorageUnavailable"
    assert sim.job.status.restarts == {"StorageUnavailable": 10}
    assert (sim.now - began).total_seconds() == 1810


def test_a_budget_is_spent_by_its_own_cause_alone() -> None:
    sim = training(failurePolicy=budgets(OutOfMemory=3, no_progress=9))

    for count in (1, 2, 3):
        restart(sim, exit_code=137, reason="OOMKilled")
        assert sim.job.status.restarts["OutOfMemory"] == count
    restart(sim, exit_code=71)
    restart(sim, exit_code=137, reason="OOMKilled")

    assert sim.job.status.restarts == {"OutOfMemory": 3, "Infrastructure": 1}
    assert sim.condition("Failed").reason == "OutOfMemory"


def test_the_default_budget_for_memory_is_told_before_the_lack_of_progress() -> None:
    sim = training()

    while sim.phase() is not Phase.FAILED:
        restart(sim, exit_code=137, reason="OOMKilled")

    assert sim.job.status.restarts == {"OutOfMemory": 3}
    assert sim.condition("Failed").reason == "OutOfMemory"


def test_a_policy_may_forbid_restarts() -> None:
    sim = training(failurePolicy=budgets(Infrastructure=0))

    restart(sim, exit_code=71)

    assert sim.condition("Failed").reason == "Infrastructure"


def test_preemption_has_no_budget_and_uses_up_no_other() -> None:
    limits = dict.fromkeys(("Infrastructure", "Unknown", "Preempted"), 3)
    sim = training(failurePolicy=budgets(**limits))

    for _ in range(10):
        restart(sim, disrupted=True)
        assert sim.phase() is Phase.TRAINING

    assert sim.job.status.restarts == {"Preempted": 10}
    assert sim.job.status.no_progress_attempts == 0


def test_restarts_without_a_newer_commit_end_the_job() -> None:
    sim = training()
    sim.progress(450, committed=400)

    for _ in range(4):
        assert sim.phase() is Phase.TRAINING
        restart(sim, exit_code=71)

    assert sim.condition("Failed").reason == "NoProgress"
    assert sim.job.status.restarts == {"Infrastructure": 3}
    assert sim.condition("CheckpointHealthy").status == "False"


def test_a_newer_commit_starts_the_count_anew() -> None:
    sim = training()
    restart(sim, exit_code=71)
    restart(sim, exit_code=71)
    restart(sim, exit_code=71)
    assert sim.job.status.no_progress_attempts == 2

    sim.progress(250, committed=200)
    restart(sim, exit_code=71)

    assert sim.job.status.no_progress_attempts == 0
    assert sim.phase() is Phase.TRAINING


def test_an_outage_of_the_storage_is_no_lack_of_progress() -> None:
    sim = training()

    for _ in range(6):
        restart(sim, exit_code=69)

    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.restarts == {"StorageUnavailable": 6}


def test_stages_without_checkpoints_do_not_count_towards_no_progress() -> None:
    sim = Simulation(make_job())
    sim.until("evaluate")

    for _ in range(6):
        sim.fail_pod("evaluate", 0, exit_code=71)
        sim.wait(3600)
        sim.run("evaluate")

    assert sim.phase() is Phase.EVALUATING
