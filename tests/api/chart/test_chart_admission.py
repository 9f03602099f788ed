"""A real API server takes what the chart renders. No node runs its pods; about 20 seconds."""

from typing import Any

import pytest
import yaml
from bed.cluster import Bed
from pretrain_testing.chart import Chart, only
from pretrain_testing.processes import wait_for

OPTIONAL: dict[str, Any] = {
    "networkPolicy": {
        "enabled": True,
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
    },
    "grafanaDashboards": {"enabled": True},
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
    "tolerations": [{"key": "cpu", "operator": "Exists"}],
    "nodeSelector": {"pool": "cpu"},
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "imagePullSecrets": [{"name": "registry"}],
}
"""All but the monitors, whose kinds the bed does not serve; they have golden files."""


@pytest.mark.parametrize("namespaced", [False, True])
def test_every_object_passes_strict_validation(
    bed: Bed, namespace: str, chart: Chart, *, namespaced: bool
) -> None:
    watched = {"watchNamespaces": [namespace]} if namespaced else {}
    manifests = chart.render({**OPTIONAL, **watched}, namespace=namespace)

    answer = bed.kubectl(
        "apply",
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "--validate=strict",
        "--filename=-",
        stdin=yaml.safe_dump_all(
            # Pods are taken only beside their service account, which a dry run does not make.
            [manifest for manifest in manifests if manifest["kind"] != "Pod"]
        ),
    )

    assert answer.count("serverside-applied (server dry run)") == len(manifests) - 1


def test_the_pods_are_admitted_where_restricted_is_enforced(
    bed: Bed, namespace: str, chart: Chart, installed: str
) -> None:
    def made() -> bool:
        deployment = bed.kubectl_json("get", "deployment", installed, "--namespace", namespace)
        return bool(deployment["status"].get("replicas") == 2)

    wait_for("both pods of the operator", made)

    test = only(chart.render(namespace=namespace), "Pod")
    answer = bed.kubectl("create", "--dry-run=server", "--filename=-", stdin=yaml.safe_dump(test))
    assert answer.strip() == f"pod/{installed}-test created (server dry run)"


ALLOWED = [
    ("list", "pretrain.dev", "pretrainjobs", ""),
    ("delete", "pretrain.dev", "pretrainjobs", ""),
    ("patch", "pretrain.dev", "pretrainjobs/status", ""),
    ("create", "batch", "jobs", ""),
    ("watch", "", "pods", ""),
    ("update", "coordination.k8s.io", "leases", "pretrain-operator"),
]
REFUSED = [
    ("create", "pretrain.dev", "pretrainjobs", ""),
    ("patch", "pretrain.dev", "pretrainjobs", ""),
    ("update", "coordination.k8s.io", "leases", "another"),
    ("get", "", "secrets", ""),
    ("create", "", "pods", ""),
    ("delete", "", "pods", ""),
    ("list", "", "namespaces", ""),
    ("list", "apiextensions.k8s.io", "customresourcedefinitions", ""),
]


def test_the_account_may_do_its_work_and_no_more(bed: Bed, namespace: str, chart: Chart) -> None:
    roles = [
        manifest
        for manifest in chart.render({"watchNamespaces": [namespace]}, namespace=namespace)
        if manifest["kind"] in {"Role", "RoleBinding", "ServiceAccount"}
    ]
    bed.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(roles))

    def may(request: tuple[str, str, str, str], *, where: str) -> bool:
        verb, group, resource, name = request
        kind, _, part = resource.partition("/")
        attributes = {
            "namespace": where,
            "verb": verb,
            "group": group,
            "resource": kind,
            "subresource": part,
            "name": name,
        }
        account = f"system:serviceaccount:{namespace}:pretrain-operator"
        review = bed.api.request(
            "POST",
            "/apis/authorization.k8s.io/v1/subjectaccessreviews",
            {
                "apiVersion": "authorization.k8s.io/v1",
                "kind": "SubjectAccessReview",
                "spec": {"user": account, "resourceAttributes": attributes},
            },
        )
        return bool(review["status"]["allowed"])

    # The authorizer of the API server learns of new roles a moment later.
    wait_for("the roles to count", lambda: may(ALLOWED[0], where=namespace))
    assert [request for request in ALLOWED if not may(request, where=namespace)] == []
    assert [request for request in REFUSED if may(request, where=namespace)] == []
    assert [request for request in ALLOWED if may(request, where="default")] == []
