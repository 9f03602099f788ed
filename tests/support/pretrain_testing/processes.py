"""Waiting for what processes do, and seeing what is left of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil

T = TypeVar("T")

PATIENCE_SECONDS = 60.0
"""Far more than anything waited for takes, on a busy machine too."""


def wait_for(what: str, probe: Callable[[], T | None], *, every: float = 0.02) -> T:
    """The first true answer of a probe, made every so many seconds; an assertion fails if none."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        answer = probe()
        if answer:
            return answer
        time.sleep(every)
    raise AssertionError(f"{what} did not happen within {PATIENCE_SECONDS:g} s")


def processes_of(directory: Path) -> list[psutil.Process]:
    """Living processes with a path under a directory in their command line or environment."""
    return [process for process in psutil.process_iter() if _mentions(process, str(directory))]


def _mentions(process: psutil.Process, text: str) -> bool:
    with suppress(psutil.Error):
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        words = [*process.cmdline(), *process.environ().values()]
        return any(text in word for word in words)
    return False
