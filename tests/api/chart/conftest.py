"""The chart and a helm that talks to the bed's API server."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bed.binaries import program
from bed.cluster import Bed
from pretrain_testing.chart import CHART, Chart

Helm = Callable[..., str]


@pytest.fixture(scope="session")
def chart() -> Chart:
    """The chart, rendered without a cluster."""
    return Chart(helm=str(program("helm")))


@pytest.fixture
def helm(bed: Bed, namespace: str, tmp_path: Path) -> Helm:
    """`helm("install", "name", CHART, "--set", ...)` in the test's namespace: what it prints."""
    homes = {f"HELM_{kind}_HOME": str(tmp_path / "helm") for kind in ("CACHE", "CONFIG", "DATA")}
    environment = {**os.environ, "KUBECONFIG": str(bed.kubeconfig), **homes}

    def run(*arguments: str | Path) -> str:
        done = subprocess.run(
            [program("helm"), *arguments, f"--namespace={namespace}"],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"helm {arguments}: {done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def installed(helm: Helm) -> Iterator[str]:
    """A release of the chart in the test's namespace; the CRD may be there from other tests."""
    helm("install", "pretrain-operator", CHART, "--take-ownership", "--force-conflicts")
    yield "pretrain-operator"
    helm("uninstall", "pretrain-operator")
