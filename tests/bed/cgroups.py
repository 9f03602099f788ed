"""The control groups under which the nodes' pods run: one tree a node, in every hierarchy."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bed.errors import BedError

_HIERARCHIES = Path("/sys/fs/cgroup")
_CONTROLLERS = ("blkio", "cpu", "cpuacct", "cpuset", "devices", "freezer", "memory", "pids")
_SYSTEMD = "systemd"
_INHERITED = ("cpuset.cpus", "cpuset.mems")
_POLL_SECONDS = 0.05
_PATIENCE_SECONDS = 30.0


def cgroup_of(node: str) -> str:
    """The control group below which a node's pods run."""
    return f"bed-{node.removeprefix('node-')}"


def groups_of(node: str) -> list[Path]:
    """That group in each hierarchy in which it is there: runtimes make more than are asked for."""
    return sorted(_HIERARCHIES.glob(f"*/{cgroup_of(node)}"))


def create_cgroup(node: str) -> None:
    """Create a node's group under each controller; BedError on a machine of another layout."""
    missing = [name for name in (*_CONTROLLERS, _SYSTEMD) if not (_HIERARCHIES / name).is_dir()]
    if missing:
        raise BedError(f"{_HIERARCHIES} lacks {', '.join(missing)}: the nodes need cgroup v1")
    for controller in (*_CONTROLLERS, _SYSTEMD):
        (_HIERARCHIES / controller / cgroup_of(node)).mkdir(exist_ok=True)
    for file in _INHERITED:
        (_HIERARCHIES / "cpuset" / cgroup_of(node) / file).write_text(
            (_HIERARCHIES / "cpuset" / file).read_text()
        )


def remove_cgroup(node: str) -> None:
    """End every process in a node's group, and remove the group."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while pids := set(_processes(node)):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise BedError(f"processes {sorted(pids)} of {node} do not end")
        time.sleep(_POLL_SECONDS)
    for group in groups_of(node):
        _remove_tree(group, deadline)


def _processes(node: str) -> Iterator[int]:
    for group in groups_of(node):
        for listing in group.rglob("cgroup.procs"):
            with suppress(OSError):
                yield from map(int, listing.read_text().split())


def _remove_tree(group: Path, deadline: float) -> None:
    """The kernel frees a group a moment after its last process has ended."""
    if not group.is_dir():
        return
    for child in [child for child in group.iterdir() if child.is_dir()]:
        _remove_tree(child, deadline)
    while True:
        try:
            group.rmdir()
        except OSError as error:
            if time.monotonic() > deadline:
                raise BedError(f"{group} cannot be removed: {error}") from error
            time.sleep(_POLL_SECONDS)
        else:
            return
