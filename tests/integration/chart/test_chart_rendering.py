"""What holds for the rendered chart whatever the golden files say."""

import json
from typing import Any

import pytest
import yaml
from pretrain_testing.chart import CHART, MONITORS, NAMESPACE, Chart, Manifest, of_kind, only

CLUSTER_SCOPED = {
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingWebhookConfiguration",
    "PriorityClass",
    "ValidatingWebhookConfiguration",
}
EVERYTHING: dict[str, Any] = {
    "serviceMonitor": {"enabled": True},
    "podMonitor": {"enabled": True},
    "grafanaDashboards": {"enabled": True},
    "networkPolicy": {"enabled": True},
}


def operator_pod(manifests: list[Manifest]) -> dict[str, Any]:
    template: dict[str, Any] = only(manifests, "Deployment")["spec"]["template"]
    return template


def operator_container(manifests: list[Manifest]) -> dict[str, Any]:
    (container,) = operator_pod(manifests)["spec"]["containers"]
    return dict(container)


def environment(manifests: list[Manifest]) -> dict[str, Any]:
    return {entry["name"]: entry.get("value") for entry in operator_container(manifests)["env"]}


def test_nothing_needs_certificates_webhooks_or_secrets(chart: Chart) -> None:
    kinds = {manifest["kind"] for manifest in chart.render(EVERYTHING, served=MONITORS)}

    assert not {kind for kind in kinds if "Webhook" in kind}
    assert not kinds & {"Secret", "APIService", "Certificate"}


def test_a_tenant_s_installation_has_nothing_at_cluster_scope(chart: Chart) -> None:
    values = {"watchNamespaces": ["team-a", "team-b"], "crds": {"enabled": False}}

    manifests = chart.render({**EVERYTHING, **values}, served=MONITORS)

    assert not {manifest["kind"] for manifest in manifests} & CLUSTER_SCOPED
    namespaces = [role["metadata"]["namespace"] for role in of_kind(manifests, "Role")]
    assert sorted(namespaces) == [NAMESPACE, "team-a", "team-b"]
    assert environment(manifests)["PRETRAIN_OPERATOR_NAMESPACES"] == "team-a,team-b"


def test_the_same_rules_hold_in_the_cluster_and_in_chosen_namespaces(chart: Chart) -> None:
    cluster = [
        role
        for role in of_kind(chart.render(), "ClusterRole")
        if role["metadata"]["name"] == "pretrain-operator"
    ]
    chosen = [
        role
        for role in of_kind(chart.render({"watchNamespaces": ["team-a"]}), "Role")
        if role["metadata"]["namespace"] == "team-a"
    ]

    assert [role["rules"] for role in cluster] == [role["rules"] for role in chosen]


def test_every_binding_is_to_a_rendered_role_and_the_operator_s_account(chart: Chart) -> None:
    manifests = chart.render({"serviceAccount": {"name": "mine"}})
    account = only(manifests, "ServiceAccount")["metadata"]

    for kind in ("Role", "ClusterRole"):
        roles = {
            (role["metadata"].get("namespace"), role["metadata"]["name"])
            for role in of_kind(manifests, kind)
        }
        for binding in of_kind(manifests, f"{kind}Binding"):
            bound = (binding["metadata"].get("namespace"), binding["roleRef"]["name"])
            assert bound in roles
            assert binding["subjects"] == [
                {
                    "kind": "ServiceAccount",
                    "name": account["name"],
                    "namespace": account["namespace"],
                }
            ]


def test_the_crd_is_the_generated_one_with_the_release_s_labels(chart: Chart) -> None:
    crd = only(chart.render(), "CustomResourceDefinition")

    text = (CHART.parents[1] / "crds/pretrainjobs.yaml").read_text()
    generated = yaml.load(text, yaml.CSafeLoader)
    labels = crd["metadata"].pop("labels")
    assert crd["metadata"].pop("annotations") == {"helm.sh/resource-policy": "keep"}
    assert crd == generated
    assert labels["app.kubernetes.io/managed-by"] == "Helm"


def test_the_crd_goes_with_the_release_when_it_is_not_to_be_kept(chart: Chart) -> None:
    crd = only(chart.render({"crds": {"keep": False}}), "CustomResourceDefinition")

    assert "annotations" not in crd["metadata"]


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({}, "pretrain-operator/operator:0.1.0"),
        ({"registry": "localhost", "tag": "bed"}, "localhost/pretrain-operator/operator:bed"),
        (
            {"registry": "r.example", "tag": "1", "operator": {"registry": "own", "tag": "2"}},
            "own/pretrain-operator/operator:2",
        ),
        (
            {"tag": "1", "operator": {"digest": f"sha256:{'a' * 64}", "repository": "x/y"}},
            f"x/y@sha256:{'a' * 64}",
        ),
    ],
)
def test_an_image_is_named_by_its_own_values_then_by_the_common_ones(
    chart: Chart, image: dict[str, Any], reference: str
) -> None:
    manifests = chart.render({"image": image})

    (test,) = only(manifests, "Pod")["spec"]["containers"]
    assert operator_container(manifests)["image"] == reference
    assert environment(manifests)["PRETRAIN_OPERATOR_IMAGE"] == reference
    assert test["image"] == reference


def test_child_labels_reach_the_operator_as_json(chart: Chart) -> None:
    labels = {"team": "nlp", "kueue.x-k8s.io/queue-name": "gpu"}

    told = environment(chart.render({"childLabels": labels}))["PRETRAIN_CHILD_LABELS"]

    assert json.loads(told) == labels


def test_every_object_carries_the_release_s_labels_and_the_common_ones(chart: Chart) -> None:
    values = {
        "commonLabels": {"team": "nlp"},
        "serviceMonitor": {"enabled": True, "labels": {"team": "ops"}},
    }

    manifests = chart.render({**EVERYTHING, **values}, served=MONITORS)

    for manifest in manifests:
        labels = manifest["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == "pretrain-operator"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["team"] == ("ops" if manifest["kind"] == "ServiceMonitor" else "nlp")


def test_no_variable_is_told_twice(chart: Chart) -> None:
    entries = operator_container(chart.render({"extraEnv": [{"name": "A", "value": "1"}]}))["env"]

    names = [entry["name"] for entry in entries]
    assert len(names) == len(set(names))


def test_only_the_operator_s_pods_are_selected(chart: Chart) -> None:
    manifests = chart.render({"networkPolicy": {"enabled": True}})
    operator = operator_pod(manifests)["metadata"]["labels"]
    test = only(manifests, "Pod")["metadata"]["labels"]

    selectors = [
        only(manifests, "Deployment")["spec"]["selector"]["matchLabels"],
        only(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
        only(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"],
        only(manifests, "Service")["spec"]["selector"],
    ]

    for selector in selectors:
        assert selector.items() <= operator.items()
        assert not selector.items() <= test.items()


def test_the_service_monitor_finds_the_metrics_service(chart: Chart) -> None:
    manifests = chart.render({"serviceMonitor": {"enabled": True}}, served=MONITORS)

    selector = only(manifests, "ServiceMonitor")["spec"]["selector"]["matchLabels"]
    assert selector.items() <= only(manifests, "Service")["metadata"]["labels"].items()


def test_names_stay_short_enough_for_a_long_release(chart: Chart) -> None:
    manifests = chart.render(EVERYTHING, release="r" * 53, served=MONITORS)

    assert max(len(manifest["metadata"]["name"]) for manifest in manifests) <= 63


def test_every_dashboard_becomes_a_config_map_as_it_is(chart: Chart) -> None:
    files = sorted((CHART / "dashboards").glob("*.json"))

    manifests = chart.render({"grafanaDashboards": {"enabled": True}})

    found = {
        name: content
        for config_map in of_kind(manifests, "ConfigMap")
        for name, content in config_map["data"].items()
        if config_map["metadata"]["labels"]["grafana_dashboard"] == "1"
    }
    assert found == {f"pretrain-{file.name}": file.read_text().strip() for file in files}


@pytest.mark.parametrize(
    ("switch", "crd"),
    [
        ("serviceMonitor", "servicemonitors.monitoring.coreos.com"),
        ("podMonitor", "podmonitors.monitoring.coreos.com"),
    ],
)
def test_a_monitor_without_its_crd_is_refused_in_one_line_that_names_it(
    chart: Chart, switch: str, crd: str
) -> None:
    said = chart.refusal({switch: {"enabled": True}})

    (line,) = [line for line in said.splitlines() if crd in line]
    assert f"{switch}.enabled needs the CRD {crd}" in line


def test_the_service_monitor_says_that_it_needs_the_service(chart: Chart) -> None:
    values = {"serviceMonitor": {"enabled": True}, "metrics": {"service": False}}

    assert "needs metrics.service=true" in chart.refusal(values, served=MONITORS)
