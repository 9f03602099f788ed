"""Small files that runtimes put into fixed places, whatever they are told, and leave there."""

from __future__ import annotations

from pathlib import Path

_LOG_LINKS = Path("/var/log/containers")
"""Every kubelet links its containers' logs there."""

_ADDRESSES = Path("/var/lib/cni/results")
"""Network plugins note there what address a container has."""

_SHIM_SOCKETS = Path("/run/containerd/s")
"""Every containerd talks to its containers' shims there."""

NETWORK = "bed"
"""Name of the bed's network in its plugins' configuration."""


def remove_leftovers() -> None:
    """Remove what nothing refers to any more; for when no node runs."""
    for path in (*_dead_links(), *_addresses(), *_dead_sockets()):
        path.unlink(missing_ok=True)


def _dead_links() -> list[Path]:
    links = _LOG_LINKS.glob("*.log")
    return [link for link in links if link.is_symlink() and not link.exists()]


def _addresses() -> list[Path]:
    """Of a container's two notes, only the one about our network tells that it was ours."""
    notes = list(_ADDRESSES.glob(f"{NETWORK}-*-eth0"))
    ours = [note.name.removeprefix(f"{NETWORK}-").removesuffix("-eth0") for note in notes]
    return notes + [_ADDRESSES / f"cni-loopback-{container}-lo" for container in ours]


def _dead_sockets() -> list[Path]:
    lines = Path("/proc/net/unix").read_text().splitlines()
    listening = {line.rpartition(" ")[2] for line in lines}
    return [path for path in _SHIM_SOCKETS.glob("*") if str(path) not in listening]
