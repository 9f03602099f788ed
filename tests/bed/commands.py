"""Runs a command to its end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from bed.errors import BedError

_SAID_CHARACTERS = 4000


def run(
    *command: str | Path,
    given: str | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float | None = None,
) -> str:
    """What it wrote on stdout; BedError with the end of what it said when it fails."""
    words = [str(word) for word in command]
    ended = subprocess.run(
        words,
        input=given,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    if ended.returncode:
        said = (ended.stdout + ended.stderr)[-_SAID_CHARACTERS:]
        raise BedError(f"{' '.join(words)} ended {ended.returncode}: {said}")
    return ended.stdout
