"""A job that cannot go on says why, and goes on when what it waits for is mended."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_api.spec.workers import WorkersSpec
from pretrain_api.status import Phase
from pretrain_operator.observed import ObservedPod
from pretrain_testing.plan_simulator import Simulation, make_job

PULL = {"reason": "ErrImagePull", "message": "registry/train:2: manifest unknown"}


def waiting_gang(**pod: Any) -> Simulation:
    """A job of four workers of which the third has not started."""
    sim = Simulation(make_job(workers={"replicas": 4}))
    sim.until("train")
    sim.change_pod("train", 2, **{"phase": "Pending", "started_at": None, **pod})
    sim.settle()
    return sim


def first_pod(sim: Simulation, **pod: Any) -> None:
    """The pod of the tokenizer's newest Job is there and does not run."""
    job = sim.child("tokenizer")
    made = ObservedPod(name=f"{job.name}-0", index=0, phase="Pending", node="node-1")
    sim.change("tokenizer", pods=(replace(made, **pod),))
    sim.settle()


def test_an_edit_replaces_an_attempt_whose_image_cannot_be_pulled_and_uses_no_budget() -> None:
    sim = waiting_gang(scheduled_at=None, **PULL)

    sim.edit(workers=WorkersSpec(replicas=4, image="registry/train:3"))
    sim.settle()

    assert sim.stage("train").attempt == 1
    assert len(sim.child_names("train")) == 1
    assert "AttemptReplaced" in sim.event_reasons()
    sim.run("train")
    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.restarts == {}


@pytest.mark.parametrize(
    "pod",
    [
        PULL,
        {"reason": "CreateContainerConfigError", "message": 'secret "hub" not found'},
        {"reason": "Unschedulable", "message": "0/3 nodes are available"},
    ],
)
def test_an_edit_replaces_an_attempt_of_any_stage_that_cannot_start(pod: dict[str, str]) -> None:
    sim = Simulation(make_job())
    sim.settle()
    first_pod(sim, **pod)

    sim.edit(active_deadline_seconds=600)
    sim.settle()

    assert sim.stage("tokenizer").attempt == 1
    assert sim.job.status.restarts == {}


def test_an_edit_replaces_an_attempt_whose_pods_are_over_the_quota() -> None:
    sim = Simulation(make_job())
    sim.settle()
    full = "forbidden: exceeded quota: small, requested: cpu=2, used: cpu=9, limited: cpu=10"
    sim.change("tokenizer", pods_refused=full)
    sim.settle()

    sim.edit(active_deadline_seconds=600)
    sim.settle()

    assert sim.stage("tokenizer").attempt == 1


def test_an_edit_leaves_alone_what_runs_or_is_about_to() -> None:
    sim = Simulation(make_job())
    sim.settle()
    first_pod(sim)
    sim.edit(active_deadline_seconds=600)
    sim.settle()
    sim.run("tokenizer")
    sim.edit(active_deadline_seconds=900)
    sim.settle()

    assert sim.stage("tokenizer").attempt == 0


def test_an_edit_leaves_alone_what_a_queue_holds_back() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.change("tokenizer", condition="Suspended", message="waits for its queue")

    sim.edit(active_deadline_seconds=600)
    sim.settle()

    assert sim.stage("tokenizer").attempt == 0


def test_an_edit_that_cannot_be_run_replaces_nothing() -> None:
    sim = waiting_gang(**PULL)

    sim.edit(workers=WorkersSpec(replicas=4, pod_template={"spec": {"restartPolicy": "Always"}}))
    sim.settle()

    assert sim.stage("train").attempt == 0
    assert sim.condition("Accepted").status == "False"


def test_an_image_that_takes_eight_minutes_on_one_node_costs_nothing() -> None:
    sim = waiting_gang(node="node-2")
    sim.change_pod("train", 2, scheduled_at=sim.now)
    for _ in range(8):
        sim.wait(60)
    assert "Rank 2: its container is still being created on node node-2; the image is" in (
        sim.job.status.blocked_by
    )

    sim.change_pod("train", 2, phase="Running", started_at=sim.now)
    sim.settle()

    assert sim.phase() is Phase.TRAINING
    assert sim.stage("train").attempt == 0
    assert sim.job.status.restarts == {}


def test_a_registry_that_is_down_for_two_minutes_costs_nothing() -> None:
    sim = waiting_gang(**PULL)
    sim.change_pod("train", 2, scheduled_at=sim.now)
    sim.wait(120)
    assert "Rank 2: cannot get the image: registry/train:2" in sim.job.status.blocked_by
    assert sim.condition("Running").status == "False"

    sim.change_pod("train", 2, phase="Running", started_at=sim.now, reason="", message="")
    sim.settle()

    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.restarts == {}


def test_ranks_that_wait_for_rank_0_name_it_and_why_it_is_absent() -> None:
    sim = Simulation(make_job(workers={"replicas": 2}))
    sim.until("train")
    sim.change_pod("train", 0, phase="Pending", reason="Unschedulable", message="no node has room")
    for _ in range(9):
        sim.wait(60)

    assert sim.job.status.blocked_by == "Rank 0: waiting (Unschedulable): no node has room"
    assert sim.stage("train").attempt == 0
    assert sim.job.status.restarts == {}


def test_why_the_attempt_before_ended_stays_told_until_the_next_one_runs() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    sim.report_failure("train", 1, Cause.NON_FINITE, message="the loss is not a number")
    assert "the loss is not a number" in sim.job.status.blocked_by
    sim.wait(600)
    assert sim.job.status.blocked_by.startswith("Rank 0 (and 1 more): not running yet. Rank 1")
    assert "the loss is not a number" in sim.job.status.blocked_by
    assert "the loss is not a number" in sim.stage("train").message

    sim.run("train")

    assert sim.job.status.blocked_by == ""
    assert "loss" not in sim.stage("train").message


def test_survivors_are_waited_for_with_the_first_failure_told() -> None:
    sim = Simulation(make_job())
    sim.until("train")

    sim.change_pod("train", 1, phase="Failed", exit_code=71, finished_at=sim.now, message="gone")
    sim.settle()

    assert sim.job.status.blocked_by == "Rank 1 on node node-1 ended with exit code 71: gone"
    assert sim.stage("train").attempt == 0


def test_a_meshs_proxy_in_a_gang_that_makes_no_step_is_told_after_a_minute() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    sim.change_pod("train", 1, proxy="istio-proxy")
    sim.wait(59)
    assert sim.job.status.blocked_by == ""
    assert sim.plan().requeue_after == 1

    sim.wait(1)

    assert "has a mesh's container istio-proxy" in sim.job.status.blocked_by
    assert sim.phase() is Phase.TRAINING
    sim.progress(1)
    assert sim.job.status.blocked_by == ""
