"""The bridge that pods and nodes share, and the rules that keep their traffic on it."""

from __future__ import annotations

from pathlib import Path

from bed.commands import run
from bed.profile import BRIDGE_ADDRESS, SECOND_ADDRESS

BRIDGE = "bed0"
_TABLE = "pretrain_bed"
_PROXY_TABLES = (("ip", "kube-proxy"), ("ip6", "kube-proxy"))
"""Tables that kube-proxy leaves behind when it is killed."""

_FENCE = f"""
table inet {_TABLE} {{
  chain forward {{
    type filter hook forward priority -10; policy accept;
    iifname "{BRIDGE}" oifname != "{BRIDGE}" drop
    iifname != "{BRIDGE}" oifname "{BRIDGE}" drop
  }}
}}
"""
"""A wrong address in a test must not leave the machine, nor must anything reach a pod."""


def create_network() -> None:
    """The bridge with both nodes' addresses, and the fence around it."""
    run("ip", "link", "add", BRIDGE, "type", "bridge")
    for address in (BRIDGE_ADDRESS, SECOND_ADDRESS):
        run("ip", "address", "add", f"{address}/24", "dev", BRIDGE)
    run("ip", "link", "set", BRIDGE, "up")
    run("nft", "-f", "-", given=_FENCE)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1\n")


def network_paths() -> list[Path]:
    """What shows in /sys while the bridge is there."""
    return [Path(f"/sys/class/net/{BRIDGE}")]


def remove_network() -> None:
    """Remove what is there of it."""
    if any(path.exists() for path in network_paths()):
        run("ip", "link", "delete", BRIDGE)
    tables = run("nft", "list", "tables").splitlines()
    for family, table in (("inet", _TABLE), *_PROXY_TABLES):
        if f"table {family} {table}" in tables:
            run("nft", "delete", "table", family, table)
