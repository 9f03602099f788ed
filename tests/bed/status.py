"""How each part of a bed is."""

from __future__ import annotations

from bed import processes
from bed.parts import PartMaker, part_makers, simulation_makers
from bed.profile import Profile


def status_lines(bed: Profile) -> list[str]:
    """A line for each part: its name, its process's id, and whether it is healthy."""
    lines = [_line(bed, name, make) for name, make in part_makers(bed).items()]
    simulated = simulation_makers().items() if not bed.has_nodes else ()
    return lines + [_line(bed, name, make) for name, make in simulated if _runs(bed, name)]


def _runs(bed: Profile, name: str) -> bool:
    return processes.running(bed, name) is not None


def _line(bed: Profile, name: str, make: PartMaker) -> str:
    pid = processes.running(bed, name)
    if pid is None:
        return f"{name:<26}{'-':>8}  down"
    healthy = make(bed).healthy()
    return f"{name:<26}{pid:>8}  {'healthy' if healthy else 'not healthy'}"
