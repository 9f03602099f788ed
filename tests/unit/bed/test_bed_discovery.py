"""Which pods Prometheus is told of."""

from typing import Any

from bed.discovery import targets_of


def pod(*, phase: str = "Running", port: str = "metrics", address: str = "10.244.0.9") -> Any:
    ports = [{"name": port, "containerPort": 9400}, {"containerPort": 80}]
    return {
        "metadata": {"name": "x", "namespace": "n", "labels": {"app.kubernetes.io/name": "app"}},
        "spec": {"nodeName": "node-a", "containers": [{"name": "main", "ports": ports}, {}]},
        "status": {"phase": phase, "podIP": address},
    }


def test_a_running_pods_metrics_port_is_a_target():
    labels = {"job": "app", "namespace": "n", "node": "node-a", "pod": "x"}

    assert targets_of([pod()]) == [{"targets": ["10.244.0.9:9400"], "labels": labels}]


def test_pods_that_ended_have_no_address_or_no_such_port_are_none():
    assert targets_of([pod(phase="Succeeded"), pod(address=""), pod(port="http")]) == []
