"""What ends an attempt is classified, counted and retried rightly, and stays told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pretrain_api.reports import Cause
from pretrain_api.status import Phase
from pretrain_operator.observed import ObservedPod
from pretrain_operator.plan.pod_failures import classify_pod
from pretrain_testing.plan_simulator import Simulation, make_job

OVER_A_LIMIT = (
    'Usage of EmptyDir volume "scratch" exceeds the limit "1Mi". ',
    "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi. ",
    'Container main exceeded its local ephemeral storage limit "1Gi". ',
)
LOW_NODE = (
    "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 9Mi."
)


def evicted(message: str) -> ObservedPod:
    return ObservedPod(
        name="p", index=0, phase="Failed", exit_code=137, reason="Evicted", message=message
    )


@pytest.mark.parametrize("message", OVER_A_LIMIT)
def test_a_pod_that_is_over_its_own_limit_of_disk_is_not_tried_again(message: str) -> None:
    failure = classify_pod(evicted(message), stage="preprocess")

    assert (failure.cause, failure.retryable) == (Cause.STORAGE_UNAVAILABLE, False)
    assert message.strip() in failure.sentence


def test_a_pod_that_its_node_had_no_disk_for_is_tried_elsewhere() -> None:
    failure = classify_pod(evicted(LOW_NODE), stage="train")

    assert (failure.cause, failure.retryable) == (Cause.INFRASTRUCTURE, True)


def test_kills_for_memory_are_counted_over_attempts_whose_jobs_are_gone() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    for attempt in range(3):
        sim.progress(100 * attempt + 50, committed=100 * attempt + 50)
        sim.fail_pod("train", 0, exit_code=137, reason="OOMKilled")
        assert sim.job.status.restarts == {"OutOfMemory": attempt + 1}
        assert not sim.child_names("train")
        sim.wait(600)
        sim.run("train")

    sim.progress(900, committed=900)
    sim.fail_pod("train", 0, exit_code=137, reason="OOMKilled")

    assert sim.phase() is Phase.FAILED
    assert sim.condition("Failed").reason == "OutOfMemory"
    assert sim.job.status.restarts == {"OutOfMemory": 3}


def test_ten_preemptions_some_before_the_first_commit_end_in_a_complete_job() -> None:
    ones = [{"cause": cause, "limit": 3} for cause in ("Infrastructure", "OutOfMemory", "Unknown")]
    sim = Simulation(make_job(failurePolicy={"restarts": ones}))
    sim.until("train")
    for attempt in range(10):
        if attempt > 3:
            sim.progress(100 * attempt, committed=100 * attempt)
        sim.fail_pod("train", 1, exit_code=None, disrupted=True, reason="PreemptionByScheduler")
        assert sim.phase() is Phase.PENDING
        sim.wait(600)
        sim.run("train")
        assert sim.phase() is Phase.TRAINING

    assert sim.job.status.restarts == {"Preempted": 10}
    assert sim.job.status.no_progress_attempts == 0
    for stage in ("train", "evaluate", "export"):
        sim.run(stage)
        sim.succeed(stage)
    assert sim.phase() is Phase.COMPLETE


@pytest.mark.parametrize(
    "lost",
    [
        {"exit_code": 1, "message": "the licence has expired"},
        {"exit_code": None, "reason": "Evicted", "message": LOW_NODE},
    ],
)
def test_no_worker_outlives_a_lost_one_and_its_last_words_stay(lost: dict[str, object]) -> None:
    policy = {
        "restarts": [{"cause": "Unknown", "limit": 0}, {"cause": "Infrastructure", "limit": 0}]
    }
    sim = Simulation(make_job(workers={"replicas": 8}, failurePolicy=policy))
    sim.until("train")
    sim.change_pod("train", 1, phase="Failed", finished_at=sim.now, **lost)
    sim.settle()

    sim.wait(30)

    assert not sim.child_names("train")
    assert sim.phase() is Phase.FAILED
    assert str(lost["message"]) in sim.job.status.blocked_by
    sim.wait(86_400)
    assert str(lost["message"]) in sim.job.status.blocked_by


def test_dead_pods_of_a_node_that_takes_none_are_one_gang_for_each_wait() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    rejected = {
        "reason": "UnexpectedAdmissionError",
        "message": "no healthy devices present; cannot allocate unhealthy devices nvidia.com/gpu",
    }
    made = len(sim.created)
    for attempt in range(3):
        sim.fail_pod("train", 0, exit_code=None, **rejected)
        assert sim.job.status.restarts == {"Infrastructure": attempt + 1}
        assert "no healthy devices" in sim.job.status.blocked_by
        assert not sim.child_names("train")
        sim.wait(1)
        assert not sim.child_names("train")
        sim.wait(600)
        sim.run("train")

    jobs = [name for name in sim.created[made:] if name.startswith("Job/")]
    assert len(jobs) == 3


def test_a_gang_that_its_queue_takes_back_counts_as_preempted_and_as_nothing_else() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    sim.progress(10, committed=10)
    for index in (0, 1):
        sim.change_pod("train", index, deleting=True)
    sim.change("train", condition="Suspended", message="Exceeded the PodsReady timeout")
    sim.settle()
    for index in (0, 1):
        ended = {"phase": "Failed", "exit_code": 75, "finished_at": sim.now}
        sim.change_pod("train", index, **ended)
    sim.wait(30)

    assert sim.job.status.restarts == {"Preempted": 1}
    assert sim.job.status.no_progress_attempts == 0
    sim.wait(600)
    sim.run("train")
    assert sim.phase() is Phase.TRAINING


def test_a_hang_that_no_pod_tells_of_costs_one_restart_of_its_own() -> None:
    sim = Simulation(make_job(failurePolicy={"hang": {"timeoutSeconds": 60}}))
    sim.until("train")
    sim.progress(10, committed=10)
    sim.wait(74)
    assert sim.stage("train").attempt == 0
    sim.wait(1)

    assert sim.job.status.restarts == {"Hang": 1}
    assert not sim.child_names("train")


def test_a_long_evaluation_is_no_hang() -> None:
    sim = Simulation(make_job(failurePolicy={"hang": {"timeoutSeconds": 60}}))
    sim.until("train")
    sim.progress(10, committed=10)

    sim.observed = replace(sim.observed, stepped_at=None)
    sim.wait(3600)

    assert sim.stage("train").attempt == 0
    assert sim.job.status.restarts == {}
