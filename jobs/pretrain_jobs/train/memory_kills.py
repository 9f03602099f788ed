"""How many processes the kernel has killed for this container's memory limit.

A limit kills one process, often a rank, and the container lives on: only these counters tell it
from any other SIGKILL. Formats: `memory.events` of control groups v2 (kernel documentation
cgroup-v2, "oom_kill"), `memory.oom_control` of v1 (cgroup-v1/memory, since Linux 4.13).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
COUNTERS = ("memory.events", "memory/memory.oom_control")
"""Files below the root of the container's own groups, of v2 and of v1."""


def kills_by_memory(root: Path = ROOT) -> int:
    """The kernel's count; 0 where neither file can be read."""
    return max(_count(root / name) for name in COUNTERS)


def _count(path: Path) -> int:
    with suppress(OSError, ValueError):
        for line in path.read_text().splitlines():
            name, _, count = line.partition(" ")
            if name == "oom_kill":
                return int(count)
    return 0
