"""When a checkpoint is due, and what is done around one: the log goes along, old ones go.

How a checkpoint is stored is the checkpoint package's subject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pretrain_api.spec.lifecycle import CheckpointSpec

from pretrain_jobs.checkpoint.cleaning import Retention
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.random_state import capture_random_state
from pretrain_jobs.checkpoint.save import Saver, SaveResult
from pretrain_jobs.train.state import Progress


@dataclass
class Keeper:
    """Saves at the right steps. `retention` is None on all ranks but the first.

    `clock` gives seconds; only rank 0's decides when `everyMinutes` are over.
    """

    spec: CheckpointSpec
    saver: Saver
    retention: Retention | None
    clock: Callable[[], float]

    def __post_init__(self) -> None:
        self._saved_at = self.clock()

    def time_is_up(self) -> bool:
        """Whether this rank finds that enough minutes have passed since the last save."""
        if self.spec.every_minutes is None or self.saver.group.rank:
            return False
        return self.clock() - self._saved_at >= 60.0 * self.spec.every_minutes

    def is_due(self, step: int) -> bool:
        """Whether a step's number calls for a save."""
        return self.spec.every_steps is not None and step % self.spec.every_steps == 0

    def save(self, progress: Progress, *, last: bool) -> SaveResult:
        """Save, then delete what the new commit makes superfluous. A collective."""
        result = self.saver.save(
            progress.step,
            trainer=progress.to_json(),
            rank_state=capture_random_state(),
        )
        self._saved_at = self.clock()
        if self.retention is not None and result.status is not None:
            generation = self.saver.generation
            key = CheckpointKey(progress.step, generation.number, generation.attempt)
            self.retention.after_commit(key, last=last)
        return result
