"""The container runtime of a node, and of the image store that nodes are copied from."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from bed.commands import run
from bed.debian import PLUGINS
from bed.health import accepts, listens
from bed.leftovers import NETWORK
from bed.network import BRIDGE
from bed.paths import cache_folder
from bed.processes import Part
from bed.profile import BRIDGE_ADDRESS, LOOPBACK, Profile

RUN = Path("/run/pretrain-bed")
"""Sockets and the state of running containers: paths of sockets have to be short."""

PAUSE_IMAGE = "localhost/pretrain-bed/pause:bed"
_RANGES = {"node-a": ("10.244.0.10", "10.244.0.127"), "node-b": ("10.244.0.128", "10.244.0.254")}
"""First and last address of a node's pods."""

_STREAM_PORTS = {"node-a": 10010, "node-b": 10011}
"""Where exec and port-forward go through: listens only when kubelets are served, as no socket."""

_IMPORT_SECONDS = 1200

_NODE_TOML = """
version = 2
root = "{root}"
state = "{run}/state"
[grpc]
  address = "{run}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  # The machine's root may lack CAP_SYS_RESOURCE, without which a lower score is refused.
  restrict_oom_score_adj = true
  sandbox_image = "{pause}"
  netns_mounts_under_state_dir = true
  stream_server_address = "{loopback}"
  stream_server_port = "{stream}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{networks}"
"""
_STORE_TOML = """
version = 2
root = "{root}"
state = "{run}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
  address = "{run}/containerd.sock"
"""


def socket_of(name: str) -> Path:
    """Where the containerd of a node, or of the store, listens."""
    return RUN / name / "containerd.sock"


def root_of(node: str) -> Path:
    """A node's images and containers: beside the store, as hard links do not cross file systems."""
    return cache_folder() / "nodes" / node


def node_containerd(bed: Profile, node: str) -> Part:
    """The containerd of a node."""
    networks = bed.state / f"cni-{node}"
    stream = _STREAM_PORTS[node]
    content = _NODE_TOML.format(
        root=root_of(node),
        run=RUN / node,
        pause=PAUSE_IMAGE,
        loopback=LOOPBACK,
        stream=stream,
        plugins=PLUGINS,
        networks=networks,
    )
    return _containerd(
        f"containerd-{node}",
        bed.state,
        content=content,
        healthy=listens(LOOPBACK, stream),
        files={networks / "10-bed.conflist": json.dumps(_network(bed, node))},
    )


def store_containerd(root: Path, folder: Path) -> Part:
    """A containerd without pods, to import images with; `folder` gets its configuration."""
    content = _STORE_TOML.format(root=root, run=RUN / "store")
    healthy = accepts(socket_of("store"))
    return _containerd("containerd-store", folder, content=content, healthy=healthy)


def ctr(name: str, *arguments: str) -> str:
    """Run containerd's own client against a node or the store."""
    address = f"--address={socket_of(name)}"
    return run("ctr", address, "--namespace=k8s.io", *arguments, seconds=_IMPORT_SECONDS)


def _containerd(
    part: str,
    folder: Path,
    *,
    content: str,
    healthy: Callable[[], bool],
    files: Mapping[Path, str] | None = None,
) -> Part:
    configuration = folder / f"{part}.toml"
    return Part(
        part,
        ("containerd", f"--config={configuration}", "--log-level=warn"),
        healthy=healthy,
        files={configuration: content, **(files or {})},
    )


def _network(bed: Profile, node: str) -> dict[str, object]:
    first, last = _RANGES[node]
    addresses = {
        "type": "host-local",
        "dataDir": str(bed.state / f"addresses-{node}"),
        "routes": [{"dst": "0.0.0.0/0"}],
        "ranges": [
            [
                {
                    "subnet": "10.244.0.0/24",
                    "rangeStart": first,
                    "rangeEnd": last,
                    "gateway": BRIDGE_ADDRESS,
                }
            ]
        ],
    }
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": addresses,
    }
    plugins = [bridge, {"type": "portmap", "capabilities": {"portMappings": True}}]
    return {"cniVersion": "0.4.0", "name": NETWORK, "plugins": plugins}
