"""A line on the terminal that tells how far a long transfer is; silent anywhere else."""

from __future__ import annotations

import sys
import threading
import time
from typing import Self, TextIO

_INTERVAL_SECONDS = 0.1
_UNITS = ("B", "kB", "MB", "GB", "TB", "PB")


class TransferMeter:
    """Counts bytes from any thread; a context manager, whose end clears the line."""

    def __init__(self, name: str, total: int, stream: TextIO | None = None) -> None:
        """`total` is in bytes; `stream` is standard error by default."""
        self._name = name
        self._total = total
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty()
        self._lock = threading.Lock()
        self._done = 0
        self._due = 0.0

    def __call__(self, count: int) -> None:
        """Take in some more bytes."""
        with self._lock:
            self._done += count
            now = time.monotonic()
            if self._shown and now >= self._due:
                self._due = now + _INTERVAL_SECONDS
                share = self._done / self._total if self._total else 1.0
                self._draw(f"{self._name}: {share:4.0%} of {in_bytes(self._total)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._draw("")

    def _draw(self, text: str) -> None:
        self._stream.write(f"\r{text}\x1b[K")
        self._stream.flush()


def in_bytes(size: int) -> str:
    """A size for people, in decimal units: `1.2 GB`."""
    value, unit = float(size), 0
    while value >= 999.5 and unit < len(_UNITS) - 1:
        value, unit = value / 1000, unit + 1
    digits = 0 if unit == 0 or value >= 99.5 else 1
    return f"{value:.{digits}f} {_UNITS[unit]}"
