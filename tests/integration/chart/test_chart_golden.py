"""Renderings as a whole, against golden files that `pytest --update-golden` renews."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pretrain_testing.chart import MONITORS, Chart, only

GOLDEN = Path(__file__).parents[2] / "data" / "chart"

INSTALLATIONS: dict[str, dict[str, Any]] = {
    "default": {},
    "tenant": {
        "commonLabels": {"team": "nlp"},
        "watchNamespaces": ["team-a", "team-b"],
        "crds": {"enabled": False},
        "image": {
            "registry": "registry.example:5000/ml",
            "tag": "1.2.3",
            "operator": {"digest": f"sha256:{'0123456789abcdef' * 4}"},
            "train": {"registry": "localhost", "tag": "mine"},
        },
        "imagePullSecrets": [{"name": "registry"}],
        "defaultStorage": {
            "uri": "s3://models/zh",
            "endpointUrl": "https://s3.example:9000",
            "credentialsSecret": "s3-credentials",
        },
        "childLabels": {"kueue.x-k8s.io/queue-name": "gpu", "cost-center": "42"},
        "lease": {"name": "leader", "seconds": 30},
        "logging": {"level": "debug", "format": "plain"},
        "serviceAccount": {"name": "trainer", "annotations": {"role": "models"}},
        "podLabels": {"tier": "control"},
        "podAnnotations": {"note": "kept"},
        "podDisruptionBudget": {"maxUnavailable": "50%"},
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"pool": "cpu"},
        "tolerations": [{"key": "cpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
        "metrics": {"port": 9090},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "podMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
            "extraEgress": [{"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}]}],
        },
    },
}


def shown(manifest: dict[str, Any], common: dict[str, str]) -> dict[str, Any]:
    """Without what would hide the rest: labels that all objects have, and the CRD's content."""
    metadata = manifest["metadata"]
    own = {key: value for key, value in metadata["labels"].items() if key not in common}
    short = {**manifest, "metadata": {**metadata, "labels": own}}
    return {**short, "spec": "..."} if manifest["kind"] == "CustomResourceDefinition" else short


@pytest.mark.parametrize("name", INSTALLATIONS)
def test_the_rendered_chart_is_the_golden_one(
    chart: Chart, name: str, *, update_golden: bool
) -> None:
    manifests = chart.render(INSTALLATIONS[name], served=MONITORS)

    common = only(manifests, "ServiceAccount")["metadata"]["labels"]
    text = yaml.safe_dump_all(
        [shown(manifest, common) for manifest in manifests], sort_keys=False, width=100
    )

    path = GOLDEN / f"{name}.yaml"
    if update_golden:
        path.write_text(text)
    assert text == path.read_text(), "run `pytest --update-golden tests/integration/chart`"
