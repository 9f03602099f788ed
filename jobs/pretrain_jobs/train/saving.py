"""Checkpoints between the loop's steps: begun, copied before the update, settled when all ended.

What training loses to them is booked here. When they are due is the keeper's subject.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from pretrain_api.reports import CheckpointStatus

from pretrain_jobs.checkpoint.orders import Companion
from pretrain_jobs.checkpoint.save import SaveResult
from pretrain_jobs.errors import InfrastructureError
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.keeper import Keeper
from pretrain_jobs.train.metrics import TrainingMetrics
from pretrain_jobs.train.optimize import Wishes
from pretrain_jobs.train.state import Progress
from pretrain_jobs.train.telemetry import Telemetry


@dataclass
class Saving:
    """The loop's saves. Its methods are collectives but for `wishes` and `before_update`."""

    keeper: Keeper
    goodput: Goodput
    metrics: TrainingMetrics
    telemetry: Telemetry | None

    def __post_init__(self) -> None:
        self._stall = 0.0
        self._offered: list[Companion] = []

    def wishes(self, *, stop: bool) -> Wishes:
        """What this rank tells the others in a step."""
        saver = self.keeper.saver
        return Wishes(
            stop=stop,
            save=self.keeper.time_is_up(),
            busy=not saver.ended(),
            failed=saver.failed,
        )

    def before_update(self) -> None:
        """Let the state be copied to its end before the optimizer changes it."""
        if self.keeper.saver.copying:
            with self._standing_still():
                self.keeper.saver.copied()

    def after_step(self, wishes: Wishes) -> None:
        """Settle the save that all ranks say has ended, or stop waiting if one says it failed."""
        saver = self.keeper.saver
        if saver.pending and not wishes.busy:
            with self._standing_still():
                result = saver.settle()
            if result.status is not None and self.telemetry is not None:
                self.telemetry.were_published(self._offered)
            self._tell(result)
        elif wishes.failed:
            saver.give_up()

    def begin(self, progress: Progress) -> None:
        """Begin to save, unless the save before is still being written."""
        with self._standing_still():
            self.keeper.begin(self._with_time(progress), self._companions())

    def save(self, progress: Progress) -> SaveResult:
        """Save and wait for the commit; a failure is told, and training ends all the same."""
        return self._save(progress, last=False)

    def save_last(self, progress: Progress) -> None:
        """Save the last step; the error of this rank, or of another, if that cannot be done."""
        result = self._save(progress, last=True)
        if result.failure:
            own = self.keeper.saver.failure_of_this_rank()
            raise own or InfrastructureError(f"the last step was not saved: {result.failure}")

    def _save(self, progress: Progress, *, last: bool) -> SaveResult:
        if self.keeper.saver.pending:
            self._finish()
        with self._standing_still():
            self.keeper.begin(self._with_time(progress), self._companions(), last=last, urgent=True)
        return self._finish()

    def _finish(self) -> SaveResult:
        with self._standing_still():
            result = self.keeper.saver.finish(lambda: self.goodput.enter("checkpoint_stall"))
        self._tell(result)
        return result

    def _companions(self) -> list[Companion]:
        self._offered = self.telemetry.unpublished() if self.telemetry is not None else []
        return self._offered

    def _with_time(self, progress: Progress) -> Progress:
        return replace(progress, time_sheet=self.goodput.sheet)

    def _tell(self, result: SaveResult) -> None:
        self.metrics.stalled(self._stall)
        self._stall = 0.0
        if result.status is not None:
            self.metrics.saved(result.seconds, size=result.size)

    @contextmanager
    def _standing_still(self) -> Iterator[None]:
        """Book the block as time lost to checkpoints."""
        before = self.goodput.seconds["checkpoint_stall"]
        with self.goodput.during("checkpoint_stall"):
            yield
        self._stall += self.goodput.seconds["checkpoint_stall"] - before


def what_is_saved(latest: CheckpointStatus | None, result: SaveResult | None) -> str:
    """What an attempt that was stopped leaves to the next one; `result` is its last save's."""
    if result is not None and result.status is None and result.kept:
        return f"all files of step {result.step} are left on the nodes, not committed"
    return f"the checkpoint of step {latest.step} is committed" if latest else "nothing saved"
