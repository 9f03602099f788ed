"""Operators as processes, with the chart's rights in the one namespace that each serves.

Most tests share one operator and one namespace, and have a job each; those that start, freeze or
end operators, or limit what there may be, have a namespace for themselves.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bed.binaries import program
from bed.cluster import Bed
from bed.namespaces import passing_namespace
from pretrain_testing.chart import Chart
from pretrain_testing.operator_process import OperatorProcess
from pretrain_testing.played_pods import PlayedJob

Start = Callable[..., OperatorProcess]
Manifest = dict[str, Any]
Admit = Callable[[str, Path], Path]
ACCOUNT = "pretrain-operator"
RBAC = "apis/rbac.authorization.k8s.io/v1"
PATHS = {"ServiceAccount": "api/v1", "Role": RBAC, "RoleBinding": RBAC}


@pytest.fixture(scope="session")
def admit(bed: Bed) -> Admit:
    """Gives the chart's operator its rights in a namespace; the kubeconfig, in a folder."""
    chart = Chart(str(program("helm")))

    def admit(namespace: str, folder: Path) -> Path:
        for manifest in chart.render({"watchNamespaces": [namespace]}, namespace=namespace):
            if manifest["kind"] in PATHS and not _is_hook(manifest):
                plural = f"{manifest['kind'].lower()}s"
                path = f"/{PATHS[manifest['kind']]}/namespaces/{namespace}/{plural}"
                bed.api.create(path, manifest)
        return bed.account_kubeconfig(folder / "kubeconfig", namespace=namespace, account=ACCOUNT)

    return admit


@pytest.fixture(scope="session")
def shared_namespace(bed: Bed) -> Iterator[str]:
    """Where the jobs are of all tests that share an operator."""
    with passing_namespace(bed.api, "played") as name:
        yield name


@pytest.fixture(scope="session")
def shared_operator(
    crd: None, admit: Admit, shared_namespace: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """One replica that leads and is ready, and goes on from test to test."""
    folder = tmp_path_factory.mktemp("operator")
    replica = OperatorProcess(
        kubeconfig=admit(shared_namespace, folder),
        namespace=shared_namespace,
        log=folder / "operator.log",
    ).start()
    yield replica.wait_until_leading().wait_until_ready()
    replica.kill()


@pytest.fixture
def operator(shared_operator: OperatorProcess) -> Iterator[OperatorProcess]:
    """The operator that is shared; nothing in it may go wrong unnoticed."""
    yield shared_operator
    print(f"--- {shared_operator.name}\n{shared_operator.logged()[-20_000:]}")
    errors = "pretrain_operator_reconcile_errors_total"
    assert shared_operator.metric(errors, reason="internal") == 0


@pytest.fixture
def job(bed: Bed, operator: OperatorProcess, shared_namespace: str) -> Iterator[PlayedJob]:
    """A PretrainJob of the shared operator's, which a test creates when it likes."""
    job = PlayedJob(bed.api, shared_namespace, name=f"job-{secrets.token_hex(3)}")
    yield job
    if job.exists():
        job.delete()
    operator.wait_until_forgotten(job.name)


@pytest.fixture
def start_operator(crd: None, admit: Admit, namespace: str, tmp_path: Path) -> Iterator[Start]:
    """Starts a replica for the test's own namespace; all of them end with the test."""
    kubeconfig = admit(namespace, tmp_path)
    started: list[OperatorProcess] = []

    def start(name: str = "operator-0", **environment: str) -> OperatorProcess:
        replica = OperatorProcess(
            kubeconfig=kubeconfig,
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
def own_job(bed: Bed, namespace: str) -> PlayedJob:
    """A PretrainJob in the test's own namespace."""
    return PlayedJob(bed.api, namespace)


def _is_hook(manifest: Manifest) -> bool:
    return "helm.sh/hook" in (manifest["metadata"].get("annotations") or {})
