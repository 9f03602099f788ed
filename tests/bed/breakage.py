"""Breaks nodes and pods from below, as machines do: nobody asks the API server for it.

What a user or a controller does to them goes through kubectl, and is no business of this module.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from bed import processes
from bed.containerd import socket_of
from bed.errors import BedError
from bed.parts import part_makers
from bed.profile import Profile

_GROUPS = Path("/sys/fs/cgroup")
_PERIOD_MICROSECONDS = 100_000
_SHIM = "containerd-shim"


def lose_node(bed: Profile, node: str) -> None:
    """Kill a node's kubelet, its runtime and the runtime's shims.

    Its containers live on, known to nobody any more, and reach the network as before.
    """
    for part in _parts_of(node):
        processes.stop(bed, part)
    for shim in _shims_of(node):
        with suppress(psutil.NoSuchProcess):
            shim.kill()


def revive_node(bed: Profile, node: str) -> None:
    """Start what of a node's parts does not run; it ends the containers that it finds."""
    for part in reversed(_parts_of(node)):
        if processes.running(bed, part) is None:
            processes.start(bed, part_makers(bed)[part](bed))


def processes_of_pod(uid: str) -> list[psutil.Process]:
    """All processes of a pod's containers, the oldest first."""
    pids = {int(pid) for path in _groups_of(uid) for pid in _read(path).split()}
    return sorted(_living(pids), key=psutil.Process.create_time)


def signal_pod(uid: str, sign: signal.Signals, *, command: str) -> None:
    """Send a signal to those processes of a pod that have a word in their command line."""
    found = [process for process in processes_of_pod(uid) if _runs(process, command)]
    if not found:
        raise BedError(f"no process of pod {uid} has {command!r} in its command line")
    for process in found:
        os.kill(process.pid, sign)


def limit_pod(uid: str, *, cores: float | None) -> None:
    """Give each container of a pod a share of the machine's time, or with None all that it may."""
    quota = -1 if cores is None else round(cores * _PERIOD_MICROSECONDS)
    for folder in (_GROUPS / "cpu").glob(f"bed-*/kubepods/**/pod{uid}/*"):
        with suppress(FileNotFoundError, NotADirectoryError):
            (folder / "cpu.cfs_quota_us").write_text(str(quota))


def _parts_of(node: str) -> tuple[str, str]:
    return f"kubelet-{node}", f"containerd-{node}"


def _shims_of(node: str) -> Iterator[psutil.Process]:
    socket = str(socket_of(node))
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            command = process.cmdline()
            if command and _SHIM in command[0] and socket in command:
                yield process


def _groups_of(uid: str) -> Iterator[Path]:
    """The lists of processes of a pod's own group and of its containers'."""
    for folder in (_GROUPS / "cpu").glob(f"bed-*/kubepods/**/pod{uid}"):
        yield from folder.rglob("cgroup.procs")


def _read(path: Path) -> str:
    with suppress(OSError):
        return path.read_text()
    return ""


def _living(pids: set[int]) -> Iterator[psutil.Process]:
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            yield psutil.Process(pid)


def _runs(process: psutil.Process, command: str) -> bool:
    with suppress(psutil.Error):
        return any(command in word for word in process.cmdline())
    return False
