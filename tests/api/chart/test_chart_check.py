"""The check of `helm test` against a real API server, with the chart's own account; 10 seconds."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from bed.cluster import Bed
from pretrain_operator.installation_check import main

Check = Callable[[], int]


@pytest.fixture
def check(bed: Bed, namespace: str, installed: str, tmp_path: Path) -> Check:
    """The check as the pod would run it, without waiting."""
    token = bed.kubectl("create", "token", installed, "--namespace", namespace)
    (tmp_path / "token").write_text(token.strip())
    shutil.copy(bed.profile.pki / "ca.crt", tmp_path / "ca.crt")
    environment = {
        "KUBERNETES_SERVICE_HOST": bed.profile.address,
        "KUBERNETES_SERVICE_PORT": str(bed.profile.api_port),
        "PRETRAIN_OPERATOR_NAMESPACES": "",
        "PRETRAIN_OPERATOR_LEASE_NAME": installed,
        "PRETRAIN_OPERATOR_POD_NAMESPACE": namespace,
    }
    return lambda: main(environment, service_account=tmp_path, wait_seconds=0)


def lease(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name},
        "spec": {
            "holderIdentity": "operator-0",
            "leaseDurationSeconds": 3600,
            "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }


def test_it_passes_beside_an_operator_that_leads(
    bed: Bed, namespace: str, installed: str, check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    manifest = yaml.safe_dump(lease(installed))
    bed.kubectl("create", "--filename=-", "--namespace", namespace, stdin=manifest)

    assert check() == 0
    assert f"Lease {namespace}/{installed} is held by operator-0" in capsys.readouterr().out


def test_it_says_that_the_lease_is_missing(
    namespace: str, installed: str, check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check() == 1
    assert f'leases.coordination.k8s.io "{installed}" not found' in capsys.readouterr().err


def test_it_says_what_the_account_may_not_do(
    bed: Bed, installed: str, check: Check, capsys: pytest.CaptureFixture[str]
) -> None:
    bed.kubectl("delete", "clusterrolebinding", installed)

    assert check() == 1
    assert 'cannot list resource "pretrainjobs"' in capsys.readouterr().err
