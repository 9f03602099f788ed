"""Finding and ending the processes of a run, whatever sessions and parents they have by now.

A pod's process starts others (torchrun, workers, writers of checkpoints) that open sessions of
their own and outlive their parents when those are killed. All of them inherit the environment of
their pod, so the marks set there find them in /proc. Linux only; standard library only, because
the warden has to start fast.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

WORKDIR_MARK = "PRETRAIN_LOCAL_WORKDIR"
"""Environment variable that every process of a working directory carries."""

POD_MARK = "PRETRAIN_LOCAL_POD"
"""Environment variable with the name of the pod that a process belongs to."""

Marks = Mapping[str, str]

_POLL_SECONDS = 0.02
_QUIET_SCANS = 3
"""Scans in a row that find nothing before all is taken for ended: a process that is just being
started shows no environment for an instant."""


def marked_processes(marks: Marks) -> list[int]:
    """Ids of the processes whose environment holds all marks; ended ones do not count."""
    wanted = {os.fsencode(f"{name}={value}") for name, value in marks.items()}
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) == os.getpid():
            continue
        with suppress(OSError):
            if wanted <= set((entry / "environ").read_bytes().split(b"\0")):
                found.append(int(entry.name))
    return found


def kill_marked(marks: Marks) -> int:
    """End all processes with these marks by SIGKILL and wait until none is left.

    Returns how many were killed.
    """
    killed: set[int] = set()
    quiet = 0
    while quiet < _QUIET_SCANS:
        found = marked_processes(marks)
        quiet = 0 if found else quiet + 1
        for process in found:
            killed.add(process)
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    return len(killed)
