"""Which port the children of a job serve their progress and metrics at."""

from typing import Any

import pytest
from pretrain_api.reports import PROGRESS_PORT_ENV
from pretrain_operator.children import render
from pretrain_operator.observed import Settings
from pretrain_testing.plan_simulator import make_job


def containers(settings: Settings, **spec: Any) -> dict[str, dict[str, Any]]:
    """The rendered stages' containers."""
    return {
        manifest["metadata"]["labels"]["pretrain.dev/stage"]: manifest["spec"]["template"]["spec"][
            "containers"
        ][0]
        for manifest in render(make_job(**spec), settings)
        if manifest["kind"] == "Job"
    }


def ports(container: dict[str, Any]) -> dict[str, int]:
    return {port["name"]: port["containerPort"] for port in container.get("ports", [])}


def told(container: dict[str, Any]) -> str | None:
    """The port in a container's environment."""
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    return environment.get(PROGRESS_PORT_ENV)


def test_every_stage_has_the_port_that_it_is_told() -> None:
    for container in containers(Settings(progress_port=9400)).values():
        assert ports(container)["metrics"] == 9400
        assert told(container) == "9400"


def test_on_the_hosts_network_an_attempt_has_ports_of_its_own() -> None:
    network = {"replicas": 2, "network": {"hostNetwork": True}}

    stages = containers(Settings(), workers=network)

    own = ports(stages["train"])
    assert told(stages["train"]) == str(own["metrics"])
    assert own["metrics"] not in (9400, own["rendezvous"])
    assert ports(stages["preprocess"]) == {"metrics": 9400}


def test_the_local_backend_serves_nothing() -> None:
    for container in containers(Settings(shared_network=True)).values():
        assert "metrics" not in ports(container)
        assert told(container) is None


@pytest.mark.parametrize("replicas", [1, 2])
def test_the_port_is_there_with_and_without_a_gang(replicas: int) -> None:
    train = containers(Settings(), workers={"replicas": replicas})["train"]

    assert ports(train).keys() == ({"metrics", "rendezvous"} if replicas > 1 else {"metrics"})
