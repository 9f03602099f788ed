"""What a rank does at this moment, in a few bytes of a mapped file that its launcher reads.

Writing one costs no system call, so that it can be done twice in every step. A reader may meet a
record that is half written; it differs from the one before either way.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pretrain_jobs.train.goodput import CATEGORIES, STEPS, Category

_RECORD = struct.Struct("<QQB")
"""Changes of category, finished steps, index of the category."""


@dataclass(frozen=True)
class Beat:
    """A rank's newest record: two that are equal tell that it has not moved between them."""

    changes: int = 0
    steps: int = 0
    category: Category = "init"


class Heartbeat:
    """A rank's own record. A context manager, which leaves the file behind."""

    def __init__(self, path: Path) -> None:
        """Begin a record of no step."""
        path.write_bytes(_RECORD.pack(0, 0, CATEGORIES.index("init")))
        self._file = path.open("r+b")
        self._map = mmap.mmap(self._file.fileno(), _RECORD.size)
        self._beat = Beat()

    def enter(self, category: Category) -> None:
        """Tell that the rank now does this; leaving a step, but for a save in it, ends it."""
        before = self._beat
        ended = before.category in STEPS and category != "checkpoint_stall"
        self._beat = Beat(before.changes + 1, before.steps + ended, category)
        _RECORD.pack_into(
            self._map, 0, self._beat.changes, self._beat.steps, CATEGORIES.index(category)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._map.close()
        self._file.close()


def read_beat(path: Path) -> Beat | None:
    """A rank's newest record; None where there is none yet, or none that means anything."""
    try:
        changes, steps, category = _RECORD.unpack(path.read_bytes())
        return Beat(changes, steps, CATEGORIES[category])
    except (OSError, struct.error, IndexError):
        return None
