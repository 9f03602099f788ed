"""Nodes that keep ending attempts are avoided, for a time and while others have room."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pretrain_api.reports import Cause
from pretrain_api.spec.lifecycle import FailurePolicySpec
from pretrain_api.status import SuspectNode
from pretrain_operator.observed import Manifest, ObservedPod
from pretrain_testing.plan_simulator import Simulation, make_job

BAD = "node-1"
"""Where the simulation places the pod with index 1."""

DEVICE = "CUDA error: uncorrectable ECC error"
NO_ROOM = "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector."


def policy(**fields: Any) -> dict[str, Any]:
    return FailurePolicySpec.model_validate(
        {"backoff": {"initialSeconds": 10}, "quarantine": fields}
    ).model_dump(mode="json", by_alias=True)


def training(**quarantine: Any) -> tuple[Simulation, list[Manifest]]:
    """A job that trains, and the children that are made from now on."""
    job = make_job(failurePolicy=policy(**quarantine)) if quarantine else make_job()
    sim = Simulation(job)
    sim.until("train")
    applied: list[Manifest] = []

    def take(manifest: Manifest) -> None:
        applied.append(manifest)

    sim.refuse = take
    return sim, applied


def fail(sim: Simulation, *, index: int = 1, cause: Cause = Cause.INFRASTRUCTURE) -> None:
    """Fail a rank of the running attempt, and begin the next one."""
    sim.report_failure("train", index, cause, message=DEVICE)
    sim.wait(600)


def fail_again(sim: Simulation, times: int = 1, **failure: Any) -> None:
    """Fail a rank of the running attempt, and run the next one."""
    for _ in range(times):
        fail(sim, **failure)
        sim.run("train")


def avoided(manifest: Manifest) -> list[list[str]]:
    """Nodes that each alternative of a child Job's node selector forbids."""
    pod = manifest["spec"]["template"]["spec"]
    node_affinity = pod.get("affinity", {}).get("nodeAffinity", {})
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution", {})
    return [
        [field["values"][0] for field in term.get("matchFields", ())]
        for term in required.get("nodeSelectorTerms", ())
    ]


def jobs(applied: list[Manifest]) -> list[Manifest]:
    return [manifest for manifest in applied if manifest["kind"] == "Job"]


def suspects(sim: Simulation) -> list[SuspectNode]:
    return sim.job.status.suspect_nodes


def wait_for_a_place(sim: Simulation, seconds: float) -> None:
    """The newest attempt's second rank finds no place for a while."""
    job = sim.child("train")
    pod = ObservedPod(
        name=f"{job.name}-1", index=1, phase="Pending", reason="Unschedulable", message=NO_ROOM
    )
    sim.change("train", pods=(*(p for p in job.pods if p.index != 1), pod))
    sim.wait(seconds)


def test_the_second_failure_on_a_node_keeps_it_out_of_the_next_attempt() -> None:
    sim, applied = training()

    fail_again(sim)
    assert [(node.name, node.failures, node.kept_out_until) for node in suspects(sim)] == [
        (BAD, 1, None)
    ]
    assert avoided(jobs(applied)[-1]) == []

    fail_again(sim)
    assert avoided(jobs(applied)[-1]) == [[BAD]]
    assert suspects(sim)[0].message.endswith("uncorrectable ECC error")
    assert sim.event_reasons().count("NodeKeptOut") == 1


def test_a_node_that_rejects_pods_for_its_devices_is_kept_out_at_the_second_time() -> None:
    sim, applied = training()
    for _ in range(2):
        sim.fail_pod(
            "train",
            1,
            exit_code=None,
            reason="UnexpectedAdmissionError",
            message="Allocate failed due to no healthy devices present",
        )
        sim.wait(600)
        sim.run("train")

    assert avoided(jobs(applied)[-1]) == [[BAD]]
    assert sim.job.status.restarts == {"Infrastructure": 2}


def test_failures_on_different_nodes_keep_none_out() -> None:
    sim, applied = training()

    fail_again(sim, index=0)
    fail_again(sim, index=1)

    assert [node.failures for node in suspects(sim)] == [1, 1]
    assert avoided(jobs(applied)[-1]) == []


@pytest.mark.parametrize("cause", [Cause.OUT_OF_MEMORY, Cause.UNKNOWN, Cause.STORAGE_UNAVAILABLE])
def test_a_fault_of_the_job_s_own_says_nothing_about_a_node(cause: Cause) -> None:
    sim, _ = training()

    fail_again(sim, cause=cause)

    assert suspects(sim) == []


def test_a_deleted_pod_says_nothing_about_its_node() -> None:
    sim, _ = training()

    sim.change_pod("train", 1, deleting=True)
    sim.wait(600)

    assert sim.stage("train").attempt == 1
    assert suspects(sim) == []


def test_zero_failures_keep_no_node_out() -> None:
    sim, applied = training(failures=0)

    fail_again(sim, times=3)

    assert suspects(sim) == []
    assert avoided(jobs(applied)[-1]) == []


def test_a_node_is_let_in_again_when_its_time_is_over() -> None:
    sim, applied = training(failures=1, durationSeconds=1000)

    fail_again(sim)
    assert avoided(jobs(applied)[-1]) == [[BAD]]
    fail_again(sim, index=0)
    sim.wait(1000)
    fail_again(sim, index=0)

    assert [BAD] not in avoided(jobs(applied)[-1])


def test_what_waits_for_a_place_says_which_nodes_are_kept_out() -> None:
    sim, _ = training(failures=1)
    fail(sim)

    wait_for_a_place(sim, 60)

    assert NO_ROOM in sim.job.status.blocked_by
    assert BAD in sim.job.status.blocked_by
    assert sim.stage("train").attempt == 1


def test_without_room_elsewhere_the_node_is_let_in_again_at_no_cost() -> None:
    sim, applied = training(failures=1)
    fail(sim)
    before = sim.job.status.restarts

    wait_for_a_place(sim, timedelta(minutes=5).total_seconds())

    assert sim.stage("train").attempt == 2
    assert avoided(jobs(applied)[-1]) == []
    assert sim.job.status.restarts == before
    assert suspects(sim)[0].failures == 1
    assert sim.event_reasons().count("NodesLetIn") == 1


def test_a_lack_of_room_without_nodes_kept_out_waits_on() -> None:
    sim, _ = training()
    fail_again(sim)

    wait_for_a_place(sim, timedelta(hours=2).total_seconds())

    assert sim.stage("train").attempt == 1


def test_every_alternative_of_the_user_s_own_selector_avoids_the_node() -> None:
    terms = [
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]} for zone in "ab"
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    template = {"spec": {"affinity": {"nodeAffinity": required}}}
    job = make_job(workers={"replicas": 2, "podTemplate": template})
    sim, applied = training(failures=1)
    sim.job = sim.job.model_copy(
        update={"spec": sim.job.spec.model_copy(update={"workers": job.spec.workers})}
    )

    fail_again(sim)

    made = jobs(applied)[-1]
    assert avoided(made) == [[BAD], [BAD]]
    affinity = made["spec"]["template"]["spec"]["affinity"]["nodeAffinity"]
    kept = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert [term["matchExpressions"] for term in kept] == [t["matchExpressions"] for t in terms]


def test_the_node_that_was_not_seen_for_longest_is_forgotten_first() -> None:
    sim, _ = training()
    nodes = [SuspectNode(name=f"old-{n}", failures=1) for n in range(64)]
    status = sim.job.status.model_copy(update={"suspect_nodes": nodes})
    sim.job = sim.job.model_copy(update={"status": status})

    fail_again(sim)

    assert len(suspects(sim)) == 64
    assert suspects(sim)[0].name == "old-1"
    assert suspects(sim)[-1].name == BAD
