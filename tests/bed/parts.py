"""Which processes a profile has, and the steps that bring it up."""

from __future__ import annotations

import time
from collections.abc import Callable

from bed import control_plane, processes
from bed.api_client import ApiClient
from bed.certificates import make_certificates, make_kubeconfigs
from bed.cgroups import create_cgroup
from bed.containerd import node_containerd
from bed.discovery import discovery
from bed.dns import coredns
from bed.errors import BedError
from bed.image_store import make_node_root
from bed.kubelet import kube_proxy, kubelet
from bed.kwok import kwok
from bed.namespaces import wait_for_account
from bed.network import create_network
from bed.processes import Part
from bed.profile import NODES, Profile
from bed.prometheus import prometheus
from bed.s3 import create_bucket, seaweedfs
from bed.steps import Step

PartMaker = Callable[[Profile], Part]

_NODE_SECONDS = 120.0

_CONTROL_PLANE: dict[str, PartMaker] = {
    "etcd": control_plane.etcd,
    "kube-apiserver": control_plane.api_server,
    "kube-controller-manager": control_plane.controller_manager,
}


def part_makers(bed: Profile) -> dict[str, PartMaker]:
    """Name of a part to what makes it, for all parts that the profile always has."""
    if not bed.has_nodes:
        return _CONTROL_PLANE
    return _CONTROL_PLANE | {
        "kube-scheduler": control_plane.scheduler,
        "kube-proxy": kube_proxy,
        "coredns": coredns,
        "seaweedfs": seaweedfs,
        "discovery": discovery,
        "prometheus": prometheus,
        **{f"containerd-{node}": _of_node(node_containerd, node) for node in NODES},
        **{f"kubelet-{node}": _of_node(kubelet, node) for node in NODES},
    }


def simulation_makers() -> dict[str, PartMaker]:
    """The parts that play nodes, where a test has asked for some."""
    return {"kube-scheduler": control_plane.scheduler, "kwok": kwok}


def steps(bed: Profile) -> list[Step]:
    """All that brings a profile up on a clean machine."""
    return _control_plane_steps(bed) + (_cluster_steps(bed) if bed.has_nodes else [])


def _control_plane_steps(bed: Profile) -> list[Step]:
    network = ("network",) if bed.has_nodes else ()
    return [
        Step("certificates", lambda: _prepare(bed)),
        _start(bed, "etcd"),
        _start(bed, "kube-apiserver", after=("etcd", "certificates", *network)),
        _start(bed, "kube-controller-manager", after=("kube-apiserver",)),
        Step(
            "default service account",
            lambda: wait_for_account(ApiClient(bed), "default"),
            after=("kube-controller-manager",),
        ),
    ]


def _cluster_steps(bed: Profile) -> list[Step]:
    after_api = ("kube-scheduler", "kube-proxy", "coredns", "discovery")
    return [
        Step("network", create_network),
        *[_start(bed, name, after=("kube-apiserver",)) for name in after_api],
        _start(bed, "prometheus", after=("network",)),
        _start(bed, "seaweedfs", after=("network",)),
        Step("bucket", create_bucket, after=("seaweedfs",)),
        *[step for node in NODES for step in _node_steps(bed, node)],
    ]


def _node_steps(bed: Profile, node: str) -> list[Step]:
    root, runtime, agent = f"images of {node}", f"containerd-{node}", f"kubelet-{node}"
    return [
        Step(root, lambda: make_node_root(bed, node)),
        _start(bed, runtime, after=(root, "network")),
        Step(f"cgroup of {node}", lambda: create_cgroup(node)),
        _start(bed, agent, after=(runtime, "kube-apiserver", f"cgroup of {node}")),
        Step(f"{node} ready", lambda: _wait_for_node(bed, node), after=(agent,)),
    ]


def _start(bed: Profile, name: str, *, after: tuple[str, ...] = ()) -> Step:
    return Step(name, lambda: processes.start(bed, part_makers(bed)[name](bed)), after)


def _prepare(bed: Profile) -> None:
    make_certificates(bed)
    make_kubeconfigs(bed)


def _of_node(make: Callable[[Profile, str], Part], node: str) -> PartMaker:
    return lambda bed: make(bed, node)


def _wait_for_node(bed: Profile, node: str) -> None:
    client = ApiClient(bed)
    path = f"/api/v1/nodes/{node}"
    _wait_until(lambda: client.exists(path) and _is_ready(client.get(path)), f"{node} Ready")


def _is_ready(node: dict[str, dict[str, list[dict[str, str]]]]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)


def _wait_until(probe: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _NODE_SECONDS
    while not probe():
        if time.monotonic() > deadline:
            raise BedError(f"still waiting for {what} after {_NODE_SECONDS:g} s")
        time.sleep(0.1)
