"""Simulated nodes for tests of scale: KWOK plays their kubelets.

Pods become Running at once; those of Jobs succeed some seconds later. Pods that no test marks for
these nodes do not land on them: they carry a taint.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bed.api_client import ApiClient
from bed.binaries import program
from bed.health import answers
from bed.processes import Part
from bed.profile import LOOPBACK, Profile

STAGES = Path(__file__).with_name("kwok-stages.yaml")
NODE_LABEL = "pretrain.dev/simulated"
"""Label (value "true") and taint of the simulated nodes."""

_ANNOTATION = "kwok.x-k8s.io/node"
_HEALTH_PORT = 12247


def kwok(bed: Profile, stages: Path = STAGES) -> Part:
    """The process that plays the kubelets, as the stages in a file say."""
    copy = stages_of(bed)
    return Part(
        "kwok",
        (
            str(program("kwok")),
            f"--kubeconfig={bed.kubeconfig}",
            f"--manage-nodes-with-annotation-selector={_ANNOTATION}=fake",
            "--cidr=10.64.0.0/12",
            "--node-lease-duration-seconds=0",
            f"--server-address={LOOPBACK}:{_HEALTH_PORT}",
            f"--config={copy}",
        ),
        healthy=answers(f"http://{LOOPBACK}:{_HEALTH_PORT}/healthz"),
        files={copy: stages.read_text()},
    )


def stages_of(bed: Profile) -> Path:
    """What the running KWOK was told."""
    return bed.state / "kwok-stages.yaml"


def create_simulated_nodes(
    client: ApiClient, count: int, *, cpus: int = 64, pods: int = 512
) -> None:
    """Create nodes simulated-0 ... simulated-(count - 1); existing ones stay as they are."""
    for index in range(count):
        client.create("/api/v1/nodes", _node(f"simulated-{index}", cpus=cpus, pods=pods))


def _node(name: str, *, cpus: int, pods: int) -> dict[str, Any]:
    room = {"cpu": str(cpus), "memory": f"{cpus * 4}Gi", "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {_ANNOTATION: "fake"},
            "labels": {NODE_LABEL: "true", "kubernetes.io/hostname": name},
        },
        "spec": {"taints": [{"key": NODE_LABEL, "effect": "NoSchedule"}]},
        "status": {"allocatable": room, "capacity": room},
    }
