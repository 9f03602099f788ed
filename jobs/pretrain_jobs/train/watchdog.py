"""The launcher's watch over its ranks: a step that does not end ends the attempt, with a reason.

It stands outside the ranks because a rank that hangs cannot be trusted to say so: it may be
stopped, or stuck with Python's lock held. Timed are steps, the wait for their data, each batch of
an evaluation, and saves; not the first step of an attempt, which may compile, nor the restoring
before it and the writing of the model at the end.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pretrain_jobs.errors import HangError
from pretrain_jobs.train.goodput import STEPS, Category
from pretrain_jobs.train.heartbeat import Beat, read_beat
from pretrain_jobs.train.stacks import Standing, standings

TIMED: frozenset[Category] = STEPS | {"data_wait", "evaluation", "checkpoint_stall"}
LONGEST_LOOK_SECONDS = 10.0
"""The most that one look can add: a launcher that was stopped itself knows nothing of that time."""

_TOLD_RANKS = 8
_log = logging.getLogger(__name__)


@dataclass
class Watchdog:
    """`directory` is where each rank keeps `NNNNN.beat`, `NNNNN.pid` and `NNNNN.stack`."""

    directory: Path
    timeout_seconds: float
    _still: dict[int, tuple[Beat, float]] = field(default_factory=dict)

    def look(self, elapsed: float) -> bool:
        """Whether a rank hangs, `elapsed` seconds after the last look."""
        elapsed = min(elapsed, LONGEST_LOOK_SECONDS)
        self._still = {
            rank: (beat, self._unmoved(rank, beat, elapsed)) for rank, beat in self._beats()
        }
        return any(seconds > self.timeout_seconds for _, seconds in self._still.values())

    def explain(self) -> tuple[HangError, list[Standing]]:
        """Why, once `look` has found one; the whole stacks go into the log."""
        pids: dict[int, int] = {}
        for path in sorted(self.directory.glob("*.pid")):
            with suppress(FileNotFoundError):
                pids[int(path.stem)] = int(path.read_text())
        paths = {rank: self.directory / f"{rank:05d}.stack" for rank in pids}
        found = standings(pids, paths)
        for standing in found:
            _log.error("%s; its stacks:\n%s", standing, standing.stack.strip() or "(no answer)")
        return HangError(self._sentence(found)), found

    def _unmoved(self, rank: int, beat: Beat, elapsed: float) -> float:
        before, seconds = self._still.get(rank, (None, 0.0))
        timed = beat.steps > 0 and beat.category in TIMED
        return seconds + elapsed if timed and beat == before else 0.0

    def _beats(self) -> list[tuple[int, Beat]]:
        found = [(int(path.stem), read_beat(path)) for path in self.directory.glob("*.beat")]
        return [(rank, beat) for rank, beat in found if beat is not None]

    def _sentence(self, found: list[Standing]) -> str:
        """Ranks that cannot answer first: the others wait for them."""
        ordered = sorted(found, key=lambda standing: (standing.answers, standing.rank))
        told = "; ".join(map(str, ordered[:_TOLD_RANKS]))
        more = f"; and {len(ordered) - _TOLD_RANKS} more" if len(ordered) > _TOLD_RANKS else ""
        steps = max((beat.steps for beat, _ in self._still.values()), default=0)
        return (
            f"no training step ended in {self.timeout_seconds:g} s, after {steps} steps of this "
            f"attempt: {told}{more}"
        )
