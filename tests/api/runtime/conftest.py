"""Operators as processes, each for the namespace of its test and with the chart's rights there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bed.binaries import program
from bed.cluster import Bed
from pretrain_testing.chart import Chart
from pretrain_testing.operator_process import OperatorProcess
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.stored_jobs import CRD_FILE, wait_until_served

Start = Callable[..., OperatorProcess]
PLACEHOLDER = "namespace-of-the-test"
IDENTITY = ("ServiceAccount", "Role", "RoleBinding")


@pytest.fixture(scope="session")
def crd(bed: Bed, kubernetes_client: Any) -> None:
    """The CRD, taken by the API server."""
    bed.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={CRD_FILE}")
    wait_until_served(kubernetes_client)


@pytest.fixture(scope="session")
def identity() -> str:
    """The chart's service account with its roles in the one namespace it watches, as JSON."""
    rendered = Chart(str(program("helm"))).render(
        {"watchNamespaces": [PLACEHOLDER]}, namespace=PLACEHOLDER
    )
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": _identity(rendered)})


@pytest.fixture
def operator_kubeconfig(bed: Bed, namespace: str, identity: str, tmp_path: Path) -> Path:
    """The way to the API server as the chart's operator."""
    bed.kubectl("apply", "--filename=-", stdin=identity.replace(PLACEHOLDER, namespace))
    return bed.account_kubeconfig(
        tmp_path / "kubeconfig", namespace=namespace, account="pretrain-operator"
    )


@pytest.fixture
def start_operator(
    crd: None, namespace: str, operator_kubeconfig: Path, tmp_path: Path
) -> Iterator[Start]:
    """Starts a replica for the test's namespace; all of them end with the test."""
    started: list[OperatorProcess] = []

    def start(name: str = "operator-0", **environment: str) -> OperatorProcess:
        replica = OperatorProcess(
            kubeconfig=operator_kubeconfig,
            namespace=namespace,
            log=tmp_path / f"{name}.log",
            name=name,
            environment=environment,
        ).start()
        started.append(replica)
        return replica

    yield start
    for replica in started:
        if replica.process.poll() is None:
            replica.thaw()
            replica.kill()
        print(f"--- {replica.name}\n{replica.logged()}")


@pytest.fixture
def operator(start_operator: Start) -> Iterator[OperatorProcess]:
    """One replica that leads and is ready, and is never refused anything."""
    replica = start_operator().wait_until_leading().wait_until_ready()
    yield replica
    if replica.process.poll() is None:
        assert replica.metric("pretrain_operator_reconcile_errors_total", reason="internal") == 0


@pytest.fixture
def job(bed: Bed, namespace: str) -> PlayedJob:
    """A PretrainJob that a test creates when it likes."""
    return PlayedJob(bed.api, namespace)


def _identity(rendered: list[dict[str, Any]]) -> list[dict[str, Any]]:
    hooks = "helm.sh/hook"
    return [
        manifest
        for manifest in rendered
        if manifest["kind"] in IDENTITY
        and hooks not in (manifest["metadata"].get("annotations") or {})
    ]
