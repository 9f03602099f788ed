"""Where a gang ran is told, and the next attempt goes back to what it left on its nodes' disks."""

from __future__ import annotations

from typing import Any

from pretrain_api.reports import Cause
from pretrain_operator.observed import Manifest, ObservedPod
from pretrain_testing.plan_simulator import Simulation, make_job

LOCAL = {"localVolume": {"hostPath": {"path": "/var/lib/pretrain"}}}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def next_attempt(**spec: Any) -> tuple[Simulation, Manifest]:
    """A job whose second attempt of training was begun, and that attempt's Job."""
    sim = Simulation(make_job(**spec))
    sim.until("train")
    applied: list[Manifest] = []
    sim.refuse = applied.append
    sim.report_failure("train", 1, Cause.INFRASTRUCTURE, message="a rank was killed")
    sim.wait(600)
    return sim, next(manifest for manifest in applied if manifest["kind"] == "Job")


def node_affinity(job: Manifest) -> dict[str, Any]:
    affinity = job["spec"]["template"]["spec"].get("affinity", {})
    found: dict[str, Any] = affinity.get("nodeAffinity", {})
    return found


def preferred(job: Manifest) -> list[list[str]]:
    """Nodes that each of a Job's preferences names."""
    terms = node_affinity(job).get(PREFERRED, [])
    return [term["preference"]["matchExpressions"][0]["values"] for term in terms]


def place(sim: Simulation, *nodes: str) -> None:
    """Have the newest attempt's workers run on some nodes, by index."""
    pods = [
        ObservedPod(name=f"worker-{i}", index=i, phase="Running", node=node)
        for i, node in enumerate(nodes)
    ]
    sim.change("train", pods=tuple(pods))
    sim.settle()


def test_the_nodes_of_the_newest_gang_that_ran_whole_are_told() -> None:
    sim, _ = next_attempt()
    assert sim.job.status.workers.nodes == ["node-0", "node-1"]

    place(sim, "node-8")
    assert sim.job.status.workers.nodes == ["node-0", "node-1"]

    place(sim, "node-8", "node-7")
    assert sim.job.status.workers.nodes == ["node-7", "node-8"]


def test_workers_on_one_node_are_told_as_one() -> None:
    sim, _ = next_attempt()

    place(sim, "node-8", "node-8")

    assert sim.job.status.workers.nodes == ["node-8"]


def test_the_next_attempt_prefers_the_nodes_that_hold_its_checkpoints() -> None:
    _, job = next_attempt(checkpoint=LOCAL)

    assert preferred(job) == [["node-0", "node-1"]]


def test_without_a_volume_that_outlives_pods_no_node_is_preferred() -> None:
    _, job = next_attempt()

    assert preferred(job) == []


def test_a_node_that_is_kept_out_is_not_preferred() -> None:
    policy = {"quarantine": {"failures": 1}, "backoff": {"initialSeconds": 10}}
    _, job = next_attempt(checkpoint=LOCAL, failurePolicy=policy)

    assert preferred(job) == [["node-0"]]
    assert REQUIRED in node_affinity(job)


def test_what_a_pod_template_prefers_stays() -> None:
    zone = {"key": "zone", "operator": "In", "values": ["a"]}
    theirs = {"weight": 1, "preference": {"matchExpressions": [zone]}}
    template = {"spec": {"affinity": {"nodeAffinity": {PREFERRED: [theirs]}}}}
    workers = {"replicas": 2, "podTemplate": template}
    _, job = next_attempt(checkpoint=LOCAL, workers=workers)

    assert preferred(job) == [["a"], ["node-0", "node-1"]]
