"""Gangs that share their nodes' network: a port that is taken costs an attempt, and no more."""

from __future__ import annotations

import json

from pretrain_api.reports import Cause
from pretrain_operator.observed import Manifest
from pretrain_testing.plan_simulator import Simulation, make_job


def port_of(manifest: Manifest) -> int:
    """Where the ranks of an attempt meet, by its ConfigMap."""
    return int(json.loads(manifest["data"]["config.json"])["rendezvous"]["port"])


def test_a_port_that_is_taken_is_told_with_its_node_and_the_next_attempt_has_another() -> None:
    sim = Simulation(make_job(workers={"replicas": 2, "network": {"hostNetwork": True}}))
    configs: list[Manifest] = []

    def keep(manifest: Manifest) -> None:
        if manifest["kind"] == "ConfigMap" and "-train-" in manifest["metadata"]["name"]:
            configs.append(manifest)

    sim.refuse = keep
    sim.until("train")
    taken = port_of(configs[0])
    said = f"the 2 nodes did not meet at 127.0.0.1:{taken} within 600 s"
    sim.report_failure("train", 0, Cause.INFRASTRUCTURE, message=said)
    assert sim.job.status.restarts == {"Infrastructure": 1}
    assert "node node-0" in sim.job.status.blocked_by
    assert said in sim.job.status.blocked_by

    sim.wait(600)
    sim.run("train")

    assert port_of(configs[1]) != taken
    assert sim.job.status.blocked_by == ""
