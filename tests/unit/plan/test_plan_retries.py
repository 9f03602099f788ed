"""Attempts that fail: what they cost, how long the next one waits, and when there is none."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_api.status import Phase
from pretrain_operator.observed import ObservedPod
from pretrain_testing.plan_simulator import Simulation, commit, make_job


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


def test_a_lost_rank_ends_the_gang_and_the_next_attempt_has_fresh_names() -> None:
    sim = training()

    sim.fail_pod("train", 1, exit_code=137, signal=9)
    assert [job.stage for job in sim.observed.jobs] == ["tokenizer", "preprocess"]
    assert sim.services() == []
    sim.wait(10)

    assert sim.child("train").name == "roberta-zh-0a1b2-train-1"
    assert sim.services() == ["roberta-zh-0a1b2-train-1"]
    assert sim.job.status.restarts == {"Infrastructure": 1}


def test_the_cause_is_in_status_before_the_children_that_show_it_go() -> None:
    sim = training()
    sim.change_pod("train", 1, phase="Failed", exit_code=64, finished_at=sim.now)

    made = sim.plan()

    assert [child.name for child in made.delete if child.kind == "Job"] == [
        "roberta-zh-0a1b2-train-0"
    ]
    assert made.status.phase is Phase.FAILED


def test_a_failure_whose_status_was_not_stored_is_counted_once() -> None:
    sim = training()
    before = sim.job
    seen = sim.observed
    sim.fail_pod("train", 1, exit_code=71)
    failed = replace(sim.observed, jobs=seen.jobs)
    sim.job, sim.observed = before, failed
    sim.fail_pod("train", 1, exit_code=71)

    assert sim.job.status.restarts == {"Infrastructure": 1}


def test_a_whole_gang_lost_in_one_second_is_one_restart() -> None:
    sim = training(workers={"replicas": 32})
    for index in range(30):
        sim.change_pod("train", index, phase="Failed", exit_code=137, finished_at=sim.now)

    sim.fail_pod("train", 30, exit_code=137)

    assert sim.job.status.restarts == {"Infrastructure": 1}
    assert sim.stage("train").attempt == 1


def test_the_next_attempt_waits_for_its_time() -> None:
    sim = training(failurePolicy={"backoff": {"initialSeconds": 20}})

    sim.fail_pod("train", 1, exit_code=71)
    sim.wait(19)
    assert sim.child_names("train") == []
    assert "20" in sim.job.status.blocked_by
    made = sim.plan()
    assert made.requeue_after == 1

    sim.wait(1)
    assert sim.child("train").attempt == 1
    assert sim.stage("train").retry_time is None


def test_waits_double_up_to_the_maximum() -> None:
    sim = training(failurePolicy={"backoff": {"initialSeconds": 10, "maximumSeconds": 35}})
    waits = []
    for step in range(1, 5):
        sim.progress(step * 10, committed=step * 10)
        sim.fail_pod("train", 1, exit_code=71)
        retry_time = sim.stage("train").retry_time
        assert retry_time is not None
        waits.append((retry_time - sim.now).total_seconds())
        sim.wait(waits[-1])
        sim.run("train")

    assert waits == [10, 20, 35, 35]


def test_the_wait_counts_from_the_attempts_end_not_from_when_it_was_noticed() -> None:
    sim = training()
    ended = sim.now
    sim.now += timedelta(hours=1)

    sim.fail_pod("train", 1, exit_code=71, finished_at=ended)

    assert sim.child("train").attempt == 1


def test_the_next_attempt_waits_for_pods_that_may_be_saving_but_not_for_ever() -> None:
    sim = training()
    stuck = sim.child("train")
    sim.change_pod("train", 1, phase="Running", disrupted=True, deleting=True)
    sim.settle()
    ghost = ObservedPod(name="g", index=1, phase="Running", deleting=True)
    lost = replace(stuck, deleting=True, pods=(ghost,))
    sim.observed = replace(sim.observed, jobs=(*sim.observed.jobs, lost))

    sim.wait(10)
    assert sim.stage("train").attempt == 1
    assert "ending" in sim.job.status.blocked_by

    sim.wait(120)
    assert sim.child("train").attempt == 1


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


def test_the_checkpoint_in_status_survives_a_restart_and_never_goes_back() -> None:
    sim = training()
    sim.progress(450, committed=400)

    restart(sim, exit_code=71)
    sim.progress(401, committed=200)

    assert sim.job.status.checkpoint == commit(400)


def test_a_job_that_vanished_is_an_infrastructure_failure() -> None:
    sim = training()
    jobs = [job for job in sim.observed.jobs if job.stage != "train"]
    sim.observed = replace(sim.observed, jobs=tuple(jobs))

    sim.settle()

    assert sim.job.status.restarts == {"Infrastructure": 1}


def test_a_frozen_step_is_a_hang() -> None:
    sim = training(failurePolicy={"hang": {"timeoutSeconds": 600}})
    sim.progress(10)

    sim.wait(599)
    assert sim.job.status.restarts == {}
    made = sim.plan()
    assert made.requeue_after == 1
    sim.wait(1)

    assert sim.job.status.restarts == {"Hang": 1}
    assert [job.stage for job in sim.observed.jobs] == ["tokenizer", "preprocess"]


def test_no_answer_from_rank_0_is_no_hang() -> None:
    sim = training(failurePolicy={"hang": {"timeoutSeconds": 600}})
    sim.progress(10)
    sim.observed = replace(sim.observed, stepped_at=None)

    sim.wait(3600)

    assert sim.job.status.restarts == {}
    assert sim.job.status.training is not None
    assert sim.job.status.training.step == 10


def test_an_image_that_does_not_come_costs_an_attempt_only_after_a_while() -> None:
    sim = training()
    sim.change_pod(
        "train", 1, phase="Pending", reason="ImagePullBackOff", message="manifest unknown"
    )
    sim.wait(120)
    assert sim.job.status.restarts == {}
    assert "manifest unknown" in sim.job.status.blocked_by
    assert "rank 1" in sim.job.status.blocked_by.lower()

    sim.wait(480)

    assert sim.job.status.restarts == {"ImagePull": 1}


def test_every_failed_attempt_is_told_once() -> None:
    sim = training()

    restart(sim, exit_code=71, message="NCCL error")
    told = [event for event in sim.events if event.reason == "AttemptFailed"]

    assert len(told) == 1
    assert told[0].type == "Warning"
    assert "Attempt 0 of train ended with Infrastructure" in told[0].message
    assert "NCCL error" in told[0].message
