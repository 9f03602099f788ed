"""Manifests as a whole, against small golden files that `pytest --update-golden` renews."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from pretrain_operator.children import render
from pretrain_operator.observed import Settings
from pretrain_testing.plan_simulator import make_job

GOLDEN = Path(__file__).parents[2] / "data" / "children"

JOBS: dict[str, dict[str, Any]] = {
    "smallest": {"workers": {}, "evaluation": {}},
    "gang": {
        "preprocess": {"parallelism": 4},
        "workers": {
            "replicas": 2,
            "processesPerWorker": 8,
            "resources": {"limits": {"nvidia.com/gpu": 8, "memory": "400Gi"}},
            "sharedMemory": "16Gi",
            "network": {"hostNetwork": True},
            "image": "registry.example/train:1",
            "podTemplate": {
                "metadata": {"annotations": {"team": "nlp"}},
                "spec": {
                    "containers": [
                        {
                            "name": "main",
                            "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
                            "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
                        }
                    ],
                    "initContainers": [
                        {"name": "metrics", "image": "metrics:1", "restartPolicy": "Always"}
                    ],
                    "volumes": [{"name": "cache", "emptyDir": {}}],
                },
            },
        },
        "storage": {
            "uri": "s3://models/zh",
            "endpointUrl": "https://s3.example:9000",
            "region": "eu-central-1",
            "serviceAccountName": "trainer",
            "caBundle": "company-ca",
        },
        "scheduling": {
            "priorityClassName": "batch",
            "topologyKey": "topology.kubernetes.io/rack",
            "nodeSelector": {"pool": "gpu"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}],
        },
    },
}


STAGES_SHOWN = {"smallest": ["tokenizer", "train"], "gang": ["preprocess", "train"]}
"""The other stages' children differ from these in names and images."""


def stage_of(manifest: dict[str, Any]) -> str:
    return str(manifest["metadata"]["labels"]["pretrain.dev/stage"])


def without_config(manifest: dict[str, Any]) -> dict[str, Any]:
    """Configs have tests of their own; here they would hide the manifests."""
    if manifest["kind"] != "ConfigMap":
        return manifest
    return {**manifest, "data": dict.fromkeys(manifest["data"], "...")}


@pytest.mark.parametrize("name", JOBS)
def test_rendered_children_are_the_golden_ones(name: str, *, update_golden: bool) -> None:
    manifests = render(make_job(**JOBS[name]), Settings(labels={"installation": "test"}))

    shown = [without_config(m) for m in manifests if stage_of(m) in STAGES_SHOWN[name]]
    text = yaml.safe_dump_all(shown, sort_keys=False, width=100)

    path = GOLDEN / f"{name}.yaml"
    if update_golden:
        path.write_text(text)
    assert text == path.read_text(), "run `pytest --update-golden tests/unit/children`"
