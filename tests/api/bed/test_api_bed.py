"""The `api` profile: a real API server with its controllers, and simulated nodes on demand."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from bed.cluster import Bed
from bed.errors import BedError
from bed.failures import dump_failure
from bed.kwok import NODE_LABEL
from bed.status import status_lines
from pretrain_testing.processes import wait_for

RESTRICTED = {
    "runAsNonRoot": True,
    "runAsUser": 65532,
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def pod_spec(**fields: object) -> dict[str, object]:
    main = {"name": "main", "image": "localhost/none:bed", "securityContext": CONTAINER}
    return {
        "restartPolicy": "Never",
        "securityContext": RESTRICTED,
        "containers": [main],
        "tolerations": [{"key": NODE_LABEL, "operator": "Exists"}],
        **fields,
    }


def job(name: str, *, annotations: dict[str, str]) -> str:
    template = {"metadata": {"annotations": annotations}, "spec": pod_spec()}
    spec = {
        "completionMode": "Indexed",
        "completions": 2,
        "parallelism": 2,
        "backoffLimit": 0,
        "template": template,
    }
    metadata = {"name": name}
    return yaml.safe_dump(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}
    )


def test_every_part_is_healthy(bed: Bed):
    assert [line for line in status_lines(bed.profile) if not line.endswith("  healthy")] == []


def test_the_server_reports_the_version_that_it_was_built_from(bed: Bed):
    version = json.loads(bed.kubectl("get", "--raw=/version"))

    assert (version["major"], version["minor"]) == ("1", "34")
    assert version["gitVersion"].startswith("v1.34.")


def test_pods_that_break_pod_security_are_refused(bed: Bed, namespace: str):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "root"},
        "spec": {"containers": [{"name": "main", "image": "localhost/none:bed"}]},
    }

    with pytest.raises(BedError, match="violates PodSecurity"):
        bed.kubectl("apply", "-f", "-", "-n", namespace, stdin=yaml.safe_dump(pod))


def test_simulated_nodes_run_a_job_to_the_end_that_its_pods_ask_for(
    bed: Bed, namespace: str, simulate_nodes: Callable[[int], None]
):
    simulate_nodes(2)
    good = {
        "simulated.pretrain.dev/run": "100ms",
        "simulated.pretrain.dev/message": '{"said": "hi"}',
    }
    bad = {"simulated.pretrain.dev/run": "100ms", "simulated.pretrain.dev/exit-code": "71"}

    bed.kubectl("apply", "-f", "-", "-n", namespace, stdin=job("good", annotations=good))
    bed.kubectl("apply", "-f", "-", "-n", namespace, stdin=job("bad", annotations=bad))

    bed.kubectl("wait", "job/good", "--for=condition=Complete", "-n", namespace, "--timeout=60s")
    bed.kubectl("wait", "job/bad", "--for=condition=Failed", "-n", namespace, "--timeout=60s")
    assert ended(bed, namespace, "good") == {(0, '{"said": "hi"}')}
    assert (71, "") in ended(bed, namespace, "bad")


def test_what_a_service_account_asks_for_is_in_the_audit_log(
    bed: Bed, namespace: str, tmp_path: Path
):
    config = bed.account_kubeconfig(tmp_path / "kubeconfig", namespace=namespace, account="default")

    with pytest.raises(BedError, match="Forbidden"):
        bed.kubectl("get", "leases", f"--namespace={namespace}", f"--kubeconfig={config}")

    user = f"system:serviceaccount:{namespace}:default"
    event = wait_for("the audited request", lambda: audited(bed, user))
    assert (event["verb"], event["objectRef"]["resource"]) == ("list", "leases")
    assert event["responseStatus"]["code"] == 403


def test_a_deleted_namespace_goes_with_what_is_in_it(bed: Bed):
    bed.kubectl("create", "namespace", "short-lived")
    bed.kubectl("create", "configmap", "x", "--namespace=short-lived")

    bed.kubectl("delete", "namespace", "short-lived", "--timeout=60s")

    assert not bed.api.exists("/api/v1/namespaces/short-lived")


def test_a_failed_test_leaves_what_the_cluster_says_about_its_namespace(bed: Bed, namespace: str):
    bed.kubectl("create", "configmap", "of-the-test", "-n", namespace)

    folder = dump_failure(bed, test="tests/api/x.py::test_x[1]", namespace=namespace)

    assert folder.parent == bed.profile.state / "failures"
    assert "of-the-test" in (folder / "objects.yaml").read_text()
    assert (folder / "events.txt").exists()
    shutil.rmtree(folder)


def ended(bed: Bed, namespace: str, name: str) -> set[tuple[int, str]]:
    """Exit code and termination message of each ended container of a Job."""
    pods = bed.kubectl_json(
        "get", "pods", f"--namespace={namespace}", f"-lbatch.kubernetes.io/job-name={name}"
    )
    states = [
        status["state"]
        for pod in pods["items"]
        for status in pod["status"].get("containerStatuses", [])
    ]
    terminated = [state["terminated"] for state in states if "terminated" in state]
    return {(state["exitCode"], state.get("message", "")) for state in terminated}


def audited(bed: Bed, user: str) -> dict[str, Any] | None:
    lines = bed.audit_log.read_text().splitlines()
    events = (json.loads(line) for line in lines if user in line)
    return next((event for event in events if event["objectRef"].get("resource") == "leases"), None)
