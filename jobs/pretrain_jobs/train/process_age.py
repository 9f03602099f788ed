"""Since when a process lives, as Linux tells it: its imports are part of what a start costs."""

from __future__ import annotations

import os
import time
from pathlib import Path

STARTED_ENV = "PRETRAIN_STARTED"
"""Environment variable with the start of a pod's first process, on the monotonic clock of its
node, in seconds. Its ranks begin their books there."""

_STAT = Path("/proc/self/stat")
_START_FIELD = 21
"""Of /proc/PID/stat, from 0: the start, in clock ticks after boot (proc(5))."""


def started() -> float:
    """When this process started, on the monotonic clock; now, where the kernel does not tell."""
    now = time.monotonic()
    try:
        start = start_of(_STAT.read_text(), ticks_per_second=os.sysconf("SC_CLK_TCK"))
    except (OSError, ValueError, IndexError):
        return now
    return now - max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - start)


def start_of(stat: str, *, ticks_per_second: int) -> float:
    """Seconds from boot to a process's start; its name in the second field may hold anything."""
    fields = stat[stat.rindex(")") + 1 :].split()
    return int(fields[_START_FIELD - 2]) / ticks_per_second


def handed_down(text: str | None) -> float | None:
    """What the environment tells; None where it tells nothing."""
    try:
        return float(text) if text else None
    except ValueError:
        return None
