"""What a job says while it waits, and what its waiting costs: nothing that was not its fault."""

from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_api.spec.lifecycle import FailurePolicySpec
from pretrain_api.status import Phase
from pretrain_operator.observed import ObservedPod, RunningInit
from pretrain_testing.plan_simulator import Simulation, make_job

NO_PLACE = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
UNMET = "rank 0 at roberta-zh-0a1b2-train-0-0.a.team-a.svc:29400 was not reached within 600 s"


def gang(**spec: Any) -> Simulation:
    """A job whose gang runs but for what a test takes away."""
    sim = Simulation(make_job(**spec))
    sim.until("train")
    return sim


def pending(sim: Simulation, index: int, **pod: Any) -> None:
    """One worker has not started yet."""
    waits = {"phase": "Pending", "started_at": None, "node": "", **pod}
    sim.change_pod("train", index, **waits)
    sim.settle()


def unschedulable(sim: Simulation, index: int) -> None:
    pending(sim, index, reason="Unschedulable", message=NO_PLACE)


def test_a_gang_that_is_not_whole_is_not_training() -> None:
    sim = gang(workers={"replicas": 4})

    unschedulable(sim, 2)

    assert sim.phase() is Phase.PENDING
    running = sim.condition("Running")
    assert (running.status, running.reason) == ("False", "Unschedulable")
    assert sim.job.status.blocked_by == f"Rank 2: waiting (Unschedulable): {NO_PLACE}"


def test_workers_that_run_are_left_alone_while_another_waits() -> None:
    sim = gang(workers={"replicas": 4})
    unschedulable(sim, 2)

    for _ in range(10):
        sim.wait(600)

    assert len(sim.child("train").pods) == 4
    assert sim.stage("train").attempt == 0
    assert sim.job.status.restarts == {}


def test_ranks_that_gave_up_on_a_peer_without_a_place_use_no_budget() -> None:
    sim = gang(workers={"replicas": 4})
    for attempt in range(6):
        unschedulable(sim, 2)
        sim.report_failure("train", 1, Cause.INFRASTRUCTURE, message=UNMET)
        sim.wait(30)
        assert sim.job.status.restarts == {"Quota": attempt + 1}
        told = [event.message for event in sim.events if event.reason == "AttemptFailed"]
        assert NO_PLACE in told[-1]
        assert UNMET in told[-1]
        sim.wait(300)
        sim.run("train")

    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.no_progress_attempts == 0


def test_ranks_that_gave_up_on_a_peer_whose_image_is_still_pulled_say_so() -> None:
    sim = gang(workers={"replicas": 4})
    pending(sim, 2, node="node-b", scheduled_at=sim.now)
    sim.wait(600)

    sim.report_failure("train", 1, Cause.INFRASTRUCTURE, message=UNMET)
    sim.wait(30)

    assert sim.job.status.restarts == {"ImagePull": 1}
    assert "Rank 2: its container is still being created on node node-b" in (
        sim.job.status.blocked_by
    )
    assert UNMET in sim.job.status.blocked_by


def test_what_was_waited_for_is_remembered_while_the_attempt_ends() -> None:
    sim = gang(workers={"replicas": 4})
    unschedulable(sim, 2)
    sim.change_pod("train", 1, phase="Failed", exit_code=71, finished_at=sim.now, message=UNMET)
    sim.settle()
    assert NO_PLACE in sim.job.status.blocked_by

    sim.wait(30)

    assert sim.job.status.restarts == {"Quota": 1}


def test_a_rendezvous_that_fails_with_every_pod_there_is_an_infrastructure_failure() -> None:
    sim = gang()
    unschedulable(sim, 1)
    sim.change_pod("train", 1, phase="Running", started_at=sim.now, reason="", message="")
    sim.settle()

    sim.report_failure("train", 1, Cause.INFRASTRUCTURE, message=UNMET)

    assert sim.job.status.restarts == {"Infrastructure": 1}
    assert UNMET in sim.job.status.blocked_by


def test_a_rank_that_fails_by_itself_while_another_waits_keeps_its_own_cause() -> None:
    sim = gang()
    unschedulable(sim, 1)

    sim.report_failure("train", 0, Cause.DATA_ERROR, message="shard 3 is damaged")

    assert sim.condition("Failed").reason == "DataError"


def test_the_time_for_meeting_covers_a_name_that_is_not_yet_known_to_dns_twice_over() -> None:
    cached_miss_seconds = 30

    assert FailurePolicySpec().rendezvous_timeout_seconds > 2 * cached_miss_seconds


def test_a_container_that_takes_long_to_be_created_is_told_after_a_minute() -> None:
    sim = gang()
    sim.change_pod(
        "train", 1, phase="Pending", started_at=None, node="node-b", scheduled_at=sim.now
    )
    sim.settle()
    assert sim.job.status.blocked_by == "Rank 1: not running yet."
    assert sim.plan().requeue_after == 60

    sim.wait(60)

    assert "Rank 1: its container is still being created on node node-b" in (
        sim.job.status.blocked_by
    )
    assert "image is being pulled" in sim.job.status.blocked_by
    assert sim.job.status.restarts == {}


def initialising(sim: Simulation) -> None:
    """Rank 1 has a node, and its init container runs from now on."""
    init = RunningInit("fetch-data", sim.now)
    pending(sim, 1, node="node-b", scheduled_at=sim.now, init=init)


def test_an_init_container_that_takes_its_time_is_told_by_name_and_by_how_long() -> None:
    sim = gang()
    initialising(sim)
    assert sim.job.status.blocked_by == "Rank 1: not running yet."

    sim.wait(60)

    assert sim.job.status.blocked_by == (
        "Rank 1: its init container fetch-data on node node-b has been running for over 1 min."
    )
    assert sim.condition("Running").reason == "InitContainer"
    assert sim.plan().requeue_after == 60


def test_the_time_of_an_init_container_is_told_ever_more_seldom() -> None:
    sim = gang()
    initialising(sim)
    told = set()

    for _ in range(4 * 60):
        sim.wait(60)
        told.add(sim.job.status.blocked_by.rpartition("over ")[2])

    assert told == {
        *(f"{minutes} min." for minutes in (1, 2, 5, 10, 20, 30)),
        *(f"{hours} h." for hours in (1, 2, 3, 4)),
    }
    assert sim.stage("train").attempt == 0


def test_ranks_that_gave_up_on_a_peer_whose_init_container_runs_say_so() -> None:
    sim = gang()
    initialising(sim)
    sim.wait(600)

    sim.report_failure("train", 0, Cause.INFRASTRUCTURE, message=UNMET)
    sim.wait(30)

    assert sim.job.status.restarts == {"Infrastructure": 1}
    assert "its init container fetch-data" in sim.job.status.blocked_by
    assert UNMET in sim.job.status.blocked_by


def test_an_image_has_its_time_from_when_the_pod_got_its_node() -> None:
    sim = gang()
    unschedulable(sim, 1)
    sim.wait(7200)
    pending(sim, 1, reason="ErrImagePull", message="mine:1: manifest unknown", scheduled_at=sim.now)
    assert sim.condition("Running").reason == "ImagePull"
    assert sim.job.status.blocked_by == ("Rank 1: cannot get the image: mine:1: manifest unknown")

    sim.wait(120)
    assert sim.job.status.restarts == {}

    sim.wait(480)
    assert sim.job.status.restarts == {"ImagePull": 1}


def test_an_image_that_never_comes_ends_the_job_and_leaves_no_pod() -> None:
    sim = gang()

    for _ in range(3):
        assert sim.phase() is not Phase.FAILED
        pending(sim, 1, reason="ImagePullBackOff", message="mine:1: manifest unknown")
        sim.wait(1000)
        sim.wait(300)
        if sim.phase() is not Phase.FAILED:
            sim.run("train")

    assert sim.condition("Failed").reason == "ImagePull"
    assert sim.job.status.restarts == {"ImagePull": 2}
    assert sim.child_names("train") == []


def test_a_pending_deadline_ends_all_workers_at_once_and_names_the_missing_rank() -> None:
    sim = gang(workers={"replicas": 4}, pendingDeadlineSeconds=3600)
    unschedulable(sim, 2)

    sim.wait(3600)

    failed = sim.condition("Failed")
    assert failed.reason == "PendingDeadlineExceeded"
    assert "Rank 2" in failed.message
    assert NO_PLACE in failed.message
    assert sim.child_names("train") == []


def test_a_job_that_its_queue_has_suspended_says_so() -> None:
    sim = Simulation(make_job())
    sim.settle()

    sim.change("tokenizer", condition="Suspended", message="waiting for admission")
    sim.settle()

    assert "is suspended, as a queue does it: waiting for admission" in sim.job.status.blocked_by
    assert sim.job.status.restarts == {}


def test_a_side_container_that_keeps_a_finished_stage_is_named() -> None:
    sim = gang()

    sim.change_pod("train", 1, exit_code=0, lingering="istio-proxy")
    sim.settle()

    assert "The work of rank 1 is done" in sim.job.status.blocked_by
    assert "istio-proxy" in sim.job.status.blocked_by


@pytest.mark.parametrize("stage", ["tokenizer", "preprocess", "evaluate", "export"])
def test_a_secret_that_is_missing_is_told_in_every_stage(stage: Any) -> None:
    sim = Simulation(make_job())
    sim.until(stage)
    text = 'secret "s3-credentials" not found'
    for pod in sim.child(stage).pods:
        sim.change_pod(
            stage, pod.index, phase="Pending", reason="CreateContainerConfigError", message=text
        )

    sim.settle()

    assert text in sim.job.status.blocked_by
    assert sim.phase() is Phase.PENDING


def test_a_pod_that_its_node_rejected_is_an_infrastructure_failure() -> None:
    sim = gang()
    rejected = ObservedPod(
        name="p", index=1, phase="Failed", reason="OutOfcpu", message="Node didn't have enough cpu"
    )
    pods = (sim.child("train").pods[0], rejected)

    sim.change("train", pods=pods)
    sim.wait(30)

    assert sim.job.status.restarts == {"Infrastructure": 1}
    assert "OutOfcpu" in sim.job.status.blocked_by
