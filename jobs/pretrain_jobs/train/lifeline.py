"""Ties a process to the one that started it: when that dies, however it dies, so does this one.

Linux only (PR_SET_PDEATHSIG, prctl(2)); elsewhere nothing happens and orphans are the platform's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping

AGENT_PID_ENV = "PRETRAIN_AGENT_PID"
"""Environment variable by which a worker knows the process that must have started it."""

_PR_SET_PDEATHSIG = 1


def die_with_parent(expected_parent: int) -> None:
    """Ask for SIGKILL at the parent's death; end at once if it is dead already."""
    if sys.platform != "linux":
        return
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0):
        number = ctypes.get_errno()
        raise OSError(number, f"prctl(PR_SET_PDEATHSIG): {os.strerror(number)}")
    if os.getppid() != expected_parent:
        os._exit(128 + signal.SIGKILL)


def die_with_agent(environment: Mapping[str, str]) -> None:
    """Do so for the agent that the environment names; a worker started by hand has none."""
    if agent := environment.get(AGENT_PID_ENV):
        die_with_parent(int(agent))
