"""What the chart's values schema accepts and refuses, and that it knows every value."""

import json
import tomllib
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any

import pytest
import yaml
from pretrain_testing.chart import CHART, Chart

ROOT = CHART.parents[1]
SCHEMA = json.loads((CHART / "values.schema.json").read_text())


def test_the_chart_s_crd_is_a_copy() -> None:
    copy = (CHART / "files/pretrainjobs.yaml").read_text()

    assert copy == (ROOT / "crds/pretrainjobs.yaml").read_text(), "run `make generate`"


def test_the_page_of_values_is_what_values_yaml_says() -> None:
    specification = spec_from_file_location("chart_files", ROOT / "tools/chart_files.py")
    assert specification
    assert specification.loader
    chart_files = module_from_spec(specification)
    specification.loader.exec_module(chart_files)

    page = chart_files.values_page((CHART / "values.yaml").read_text())

    assert page == (ROOT / "docs/reference/values.md").read_text(), "run `make generate`"


def test_the_chart_is_of_the_project_s_version() -> None:
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert about["appVersion"] == about["version"] == project["version"]


def test_the_schema_names_the_values_and_no_others() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    assert set(schema_paths(SCHEMA)) - {"global"} == set(value_paths(values))


def schema_paths(schema: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Paths of all properties, following references."""
    if "$ref" in schema:
        schema = SCHEMA["definitions"][schema["$ref"].removeprefix("#/definitions/")]
    if not schema.get("properties"):
        yield prefix.removesuffix(".")
        return
    assert schema["additionalProperties"] is False, f"{prefix} takes any key"
    for name, child in schema["properties"].items():
        yield from schema_paths(child, f"{prefix}{name}.")


def value_paths(value: Any, prefix: str = "") -> Iterator[str]:
    """Paths of all values, down to the maps that users fill as they like."""
    free = {
        "podSecurityContext.",
        "securityContext.",
        "resources.requests.",
        "resources.limits.",
        "grafanaDashboards.labels.",
    }
    if not isinstance(value, dict) or not value or prefix in free:
        yield prefix.removesuffix(".")
        return
    for name, child in value.items():
        yield from value_paths(child, f"{prefix}{name}.")


WRONG: dict[str, Any] = {
    "replicaCount": 3,
    "image": {
        "registry": "https://r.example",
        "pullPolicy": "Sometimes",
        "operator": {"repository": "a/b:1", "tags": "1"},
        "train": {"digest": "sha256:12"},
    },
    "replicas": -1,
    "watchNamespaces": ["a", "a", "Team_A"],
    "imagePullSecrets": ["registry"],
    "defaultStorage": {"uri": "my-bucket/models", "endpointUrl": "s3.example"},
    "childLabels": {"pretrain.dev/job": "x", "team": "a b"},
    "podLabels": {"app.kubernetes.io/name": "x"},
    "extraEnv": [{"name": "PRETRAIN_TRAIN_IMAGE", "value": "x"}],
    "logging": {"level": "verbose"},
    "lease": {"seconds": 1},
    "resources": {"limits": {"memory": "512 MB"}},
    "metrics": {"port": 80},
    "podDisruptionBudget": {"maxUnavailable": 0},
    "serviceMonitor": {"interval": "30"},
    "networkPolicy": {"apiServerPorts": []},
}


@pytest.fixture(scope="module")
def refusal(chart: Chart) -> str:
    """What helm says of all the wrong values at once."""
    return chart.refusal(WRONG)


@pytest.mark.parametrize(
    "line",
    [
        "at '': additional properties 'replicaCount' not allowed",
        "at '/image/registry': 'https://r.example' does not match pattern",
        "at '/image/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'",
        "at '/image/operator': additional properties 'tags' not allowed",
        "at '/image/operator/repository': 'a/b:1' does not match pattern",
        "at '/image/train/digest': 'sha256:12' does not match pattern",
        "at '/replicas': minimum: got -1, want 0",
        "at '/watchNamespaces': items at 0 and 1 are equal",
        "at '/watchNamespaces/2': 'Team_A' does not match pattern",
        "at '/imagePullSecrets/0': got string, want object",
        "at '/defaultStorage/uri': 'my-bucket/models' does not match pattern",
        "at '/defaultStorage/endpointUrl': 's3.example' does not match pattern",
        "at '/childLabels/pretrain.dev~1job': false schema",
        "at '/childLabels/team': 'a b' does not match pattern",
        "at '/podLabels/app.kubernetes.io~1name': false schema",
        "at '/extraEnv/0/name': 'not' failed",
        "at '/logging/level': value must be one of 'debug', 'info', 'warning', 'error'",
        "at '/lease/seconds': minimum: got 1, want 5",
        "at '/resources/limits/memory': '512 MB' does not match pattern",
        "at '/metrics/port': minimum: got 80, want 1,024",
        "at '/podDisruptionBudget/maxUnavailable': minimum: got 0, want 1",
        "at '/serviceMonitor/interval': '30' does not match pattern",
        "at '/networkPolicy/apiServerPorts': minItems: got 0, want 1",
    ],
)
def test_a_wrong_value_is_refused_with_its_place(refusal: str, line: str) -> None:
    assert line in refusal


@pytest.mark.parametrize(
    "values",
    [
        {"global": {"storageClass": "fast"}},
        {"replicas": 1, "podDisruptionBudget": {"enabled": False}},
        {"image": {"registry": "registry.example:5000/team/ml", "pullPolicy": "Never"}},
        {"resources": {"limits": {"cpu": 2, "memory": "1Gi", "ephemeral-storage": "1e9"}}},
        {"defaultStorage": {"uri": "file:///models"}},
        {"rbac": {"create": False}, "serviceAccount": {"create": False}},
    ],
)
def test_a_right_value_is_accepted(chart: Chart, values: dict[str, Any]) -> None:
    assert chart.render(values)


def test_the_notes_show_commands_for_these_values(chart: Chart) -> None:
    with_storage = chart.notes(
        {"watchNamespaces": ["team-a"], "defaultStorage": {"uri": "s3://models/zh"}}
    )

    assert "kubectl -n team-a get ptj -o wide --watch" in with_storage
    assert "storage: {uri" not in with_storage

    without = chart.notes()
    assert "storage: {uri" in without
    assert "There is no default storage" in without
