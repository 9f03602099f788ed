"""How each part of a bed is."""

from __future__ import annotations

from bed import processes
from bed.parts import part_makers
from bed.profile import Profile


def status_lines(bed: Profile) -> list[str]:
    """A line for each part: its name, its process's id, and whether it is healthy."""
    return [_line(bed, name) for name in part_makers(bed)]


def _line(bed: Profile, name: str) -> str:
    pid = processes.running(bed, name)
    if pid is None:
        return f"{name:<26}{'-':>8}  down"
    healthy = part_makers(bed)[name](bed).healthy()
    return f"{name:<26}{pid:>8}  {'healthy' if healthy else 'not healthy'}"
