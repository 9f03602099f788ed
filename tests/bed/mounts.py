"""What containers leave mounted."""

from __future__ import annotations

import re
from pathlib import Path

from bed.commands import run


def unmount_all(folder: Path) -> None:
    """Unmount everything below a folder, the innermost first."""
    for mount in reversed(mounts_below(folder)):
        run("umount", "--lazy", mount)


def mounts_below(folder: Path) -> list[str]:
    """Mount points at or below a folder, in the order in which they were mounted."""
    prefix = f"{folder.resolve()}/"
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    points = (_decoded(line.split()[4]) for line in lines)
    return [point for point in points if f"{point}/".startswith(prefix)]


def _decoded(point: str) -> str:
    """Spaces and the like are octal escapes there (proc(5))."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point)
