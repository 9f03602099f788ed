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


def create_cgroup(name: str) -> None:
    """Create a node's group under each controller; BedError on a machine of another layout."""
    missing = [name for name in _CONTROLLERS if not (_HIERARCHIES / name).is_dir()]
    if missing:
        raise BedError(f"{_HIERARCHIES} lacks {', '.join(missing)}: the nodes need cgroup v1")
    for group in _groups(name):
        group.mkdir(exist_ok=True)
    for file in _INHERITED:
        (_HIERARCHIES / "cpuset" / name / file).write_text(
            (_HIERARCHIES / "cpuset" / file).read_text()
        )


def remove_cgroup(name: str) -> None:
    """End every process in a node's group, and remove the group."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while pids := set(_processes(name)):
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline:
            raise BedError(f"processes {sorted(pids)} of {name} do not end")
        time.sleep(_POLL_SECONDS)
    for group in _groups(name):
        _remove_tree(group, deadline)


def _groups(name: str) -> list[Path]:
    hierarchies = [_HIERARCHIES / controller for controller in (*_CONTROLLERS, _SYSTEMD)]
    return [folder / name for folder in hierarchies if folder.is_dir()]


def _processes(name: str) -> Iterator[int]:
    for group in _groups(name):
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
