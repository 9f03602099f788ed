"""CoreDNS, as a process beside the nodes: the names of Services and of Indexed Jobs' pods."""

from __future__ import annotations

from bed.binaries import program
from bed.health import answers
from bed.processes import Part
from bed.profile import BRIDGE_ADDRESS, LOOPBACK, Profile

_READY_PORT = 8182
_COREFILE = """.:53 {{
    bind {address}
    ready {ready}
    errors
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig}
        pods insecure
        ttl 0
    }}
    cache 5
}}
"""


def coredns(bed: Profile) -> Part:
    """The DNS server of all pods."""
    ready = f"{LOOPBACK}:{_READY_PORT}"
    corefile = bed.state / "Corefile"
    content = _COREFILE.format(address=BRIDGE_ADDRESS, ready=ready, kubeconfig=bed.kubeconfig)
    return Part(
        "coredns",
        (str(program("coredns")), "-conf", str(corefile)),
        healthy=answers(f"http://{ready}/ready"),
        files={corefile: content},
    )
