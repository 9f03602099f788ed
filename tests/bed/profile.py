"""What differs between the two profiles: folders, addresses and ports.

Both may be up at once. The `api` profile listens on loopback only; the `full` one on its bridge,
and on loopback where pods have no business.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bed.paths import ROOT

ProfileName = Literal["api", "full"]

LOOPBACK = "127.0.0.1"
BRIDGE_ADDRESS = "10.244.0.1"
"""The bridge's first address: node a, the API server, DNS, object storage and Prometheus."""

SECOND_ADDRESS = "10.244.0.2"
"""The bridge's second address: node b."""

NODES = {"node-a": BRIDGE_ADDRESS, "node-b": SECOND_ADDRESS}
"""Node to its address."""

SERVICE_RANGE = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"


@dataclass(frozen=True)
class Profile:
    """A bed that can be brought up: one of each name on a machine at a time."""

    name: str
    state: Path
    has_nodes: bool
    """Whether it has kubelets, a network for pods, storage and Prometheus."""
    address: str
    """Where the API server listens."""
    api_port: int
    etcd_port: int
    """The peer port is the next one."""
    controller_manager_port: int
    scheduler_port: int

    @property
    def api_url(self) -> str:
        """The API server's."""
        return f"https://{self.address}:{self.api_port}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.state / "kubeconfig"

    @property
    def pki(self) -> Path:
        """Certificates and keys."""
        return self.state / "pki"

    @property
    def audit_log(self) -> Path:
        """One JSON event a line for each request of a service account outside kube-system."""
        return self.state / "audit.log"


def profile(name: ProfileName, state: Path | None = None) -> Profile:
    """The profile of that name; its state lies in the checkout's build folder unless told."""
    if name == "api":
        return Profile(
            name="api",
            has_nodes=False,
            state=state or ROOT / "build" / "bed-api",
            address=LOOPBACK,
            api_port=16443,
            etcd_port=12379,
            controller_manager_port=12257,
            scheduler_port=12259,
        )
    return Profile(
        name="full",
        has_nodes=True,
        state=state or ROOT / "build" / "bed",
        address=BRIDGE_ADDRESS,
        api_port=6443,
        etcd_port=2379,
        controller_manager_port=10257,
        scheduler_port=10259,
    )
