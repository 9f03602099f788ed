"""When a checkpoint is due, and what becomes of one that is due while another is being written.

How a checkpoint is stored is the checkpoint package's subject.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from pretrain_api.spec.lifecycle import CheckpointSpec

from pretrain_jobs.checkpoint.orders import Companion
from pretrain_jobs.checkpoint.random_state import capture_random_state
from pretrain_jobs.checkpoint.save import Saver
from pretrain_jobs.errors import StageError
from pretrain_jobs.train.state import Progress

_log = logging.getLogger(__name__)


@dataclass
class Keeper:
    """Saves at the right steps.

    `clock` gives seconds; only rank 0's decides when `everyMinutes` are over. `skipped` counts
    the saves left out because the one before was still being written.
    """

    spec: CheckpointSpec
    saver: Saver
    clock: Callable[[], float]
    skipped: int = 0

    def __post_init__(self) -> None:
        self._saved_at = self.clock()

    def time_is_up(self) -> bool:
        """Whether this rank finds that enough minutes have passed since the last save.

        While a save is being written the next one waits for its end.
        """
        if self.spec.every_minutes is None or self.saver.group.rank or self.saver.pending:
            return False
        return self.clock() - self._saved_at >= 60.0 * self.spec.every_minutes

    def is_due(self, step: int) -> bool:
        """Whether a step's number calls for a save."""
        return self.spec.every_steps is not None and step % self.spec.every_steps == 0

    def begin(
        self,
        progress: Progress,
        companions: Sequence[Companion] = (),
        *,
        last: bool = False,
        urgent: bool = False,
    ) -> None:
        """Begin to save, unless a save is under way: then this one is left out. A collective.

        The run's `last` save and any other that is waited for are `urgent`.
        """
        if self.saver.pending:
            self.skipped += 1
            _log.info("no checkpoint of step %d: one is still being written", progress.step)
            return
        self.saver.begin(
            progress.step,
            trainer=progress.to_json(),
            rank_state=capture_random_state(),
            last=last,
            urgent=urgent or last,
            companions=companions,
        )
        self._saved_at = self.clock()

    def __enter__(self) -> Self:
        """Have the writer up before the first save."""
        self.saver.writer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the writer; after a failure at once, and with it a save that is under way.

        The failure is told the newest commit.
        """
        if isinstance(error, StageError):
            error.checkpoint = self.saver.latest
        self.saver.close(tidily=kind is None)
