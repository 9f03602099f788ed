"""A cluster for load alone: a control plane of its own, and nodes and pods that KWOK plays.

It has another name, folder and other ports than the beds of tests, so that it neither meets them
nor counts what they do. Nothing of it outlives the benchmark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bed import processes
from bed.binaries import build
from bed.cluster import Bed
from bed.control_plane import scheduler
from bed.health import answers
from bed.kwok import create_simulated_nodes, kwok
from bed.lifecycle import down, up
from bed.namespaces import create_namespace
from bed.paths import ROOT
from bed.processes import Part
from bed.profile import LOOPBACK, Profile

PROFILE = Profile(
    name="load",
    has_nodes=False,
    state=ROOT / "build" / "bed-load",
    address=LOOPBACK,
    api_port=26443,
    etcd_port=22379,
    controller_manager_port=22257,
    scheduler_port=22259,
)
OPERATOR = "pretrain-system"
"""Namespace of the operator and its account."""

ACCOUNT = "pretrain-operator"

_CONTROLLERS = "kube-controller-manager"
_KWOK_PORT = 22247
_POD_ADDRESSES = "127.64.0.0/12"
_CRD = ROOT / "crds" / "pretrainjobs.yaml"
_CRD_NAME = "pretrainjobs.pretrain.dev"
_PATIENCE_SECONDS = 120.0


@contextmanager
def load_cluster(*, nodes: int, stages: str) -> Iterator[Bed]:
    """A fresh cluster with simulated nodes, whose pods live as KWOK's stages (YAML) say.

    Raises BedError when it cannot be brought up, or another checkout has one up.
    """
    down(PROFILE)
    build(["kube-scheduler", "kwok"])
    try:
        up(PROFILE)
        bed = Bed(PROFILE)
        _install_crd(bed)
        file = PROFILE.state / "stages.yaml"
        file.write_text(stages)
        for part in (scheduler(PROFILE), _kwok(file)):
            processes.start(PROFILE, part)
        create_simulated_nodes(bed.api, nodes)
        _wait_until(f"{nodes} nodes are Ready", lambda: _ready_nodes(bed) == nodes)
        yield bed
    finally:
        down(PROFILE)


def operator_kubeconfig(bed: Bed) -> Path:
    """The way in for a service account that may do everything.

    An account's requests are queued by priority and fairness, the administrator's are not.
    """
    create_namespace(bed.api, OPERATOR)
    bed.api.create(
        f"/api/v1/namespaces/{OPERATOR}/serviceaccounts", {"metadata": {"name": ACCOUNT}}
    )
    subject = {"kind": "ServiceAccount", "namespace": OPERATOR, "name": ACCOUNT}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    binding: dict[str, Any] = {
        "metadata": {"name": ACCOUNT},
        "roleRef": role,
        "subjects": [subject],
    }
    bed.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    path = PROFILE.state / "operator.kubeconfig"
    return bed.account_kubeconfig(path, namespace=OPERATOR, account=ACCOUNT)


def _install_crd(bed: Bed) -> None:
    """Controllers that start before it would pause for it later on."""
    bed.kubectl("apply", "--server-side", f"--filename={_CRD}")
    _wait_until("the CRD is served", lambda: _is_served(bed))
    bed.stop(_CONTROLLERS)
    bed.start(_CONTROLLERS)


def _is_served(bed: Bed) -> bool:
    crd = bed.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + _CRD_NAME)
    conditions = crd["status"].get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _kwok(stages: Path) -> Part:
    """The bed's KWOK at other addresses, as flags that come later count.

    The pods' are loopback ones: who asks a pod for progress is refused, and leaves no machine.
    """
    part = kwok(PROFILE, stages)
    address = f"{LOOPBACK}:{_KWOK_PORT}"
    return replace(
        part,
        command=(*part.command, f"--cidr={_POD_ADDRESSES}", f"--server-address={address}"),
        healthy=answers(f"http://{address}/healthz"),
    )


def _wait_until(what: str, probe: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not probe():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not after {_PATIENCE_SECONDS:g} s: {what}")
        time.sleep(0.1)


def _ready_nodes(bed: Bed) -> int:
    nodes = bed.api.get("/api/v1/nodes")["items"]
    conditions = [c for node in nodes for c in node["status"].get("conditions") or ()]
    return sum(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
