"""The loop: optimizer steps from where training stands to the last, evaluated, logged and saved.

Every decision that ranks must share is made from numbers that were reduced over them. What a step
computes depends on its number, the weights and the samples alone.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from pretrain_api.spec.training import TrainingSpec

from pretrain_jobs.errors import PreemptedError
from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.train.anomalies import after_step, must_skip, require_finite
from pretrain_jobs.train.data import Step
from pretrain_jobs.train.engine import Engine
from pretrain_jobs.train.evaluation import evaluate
from pretrain_jobs.train.figures import (
    evaluation_line,
    newest_line,
    training_line,
    training_status,
)
from pretrain_jobs.train.goodput import STEPS, Category, Goodput
from pretrain_jobs.train.keeper import Keeper
from pretrain_jobs.train.ledger import Ledger
from pretrain_jobs.train.metrics import Shown, TrainingMetrics
from pretrain_jobs.train.optimize import StepOutcome, Wishes, optimize
from pretrain_jobs.train.pace import Pace, Stragglers, ratios
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.saving import Saving, what_is_saved
from pretrain_jobs.train.schedule import learning_rate
from pretrain_jobs.train.state import LogLine, LossSum, Progress
from pretrain_jobs.train.stopping import StopRequest
from pretrain_jobs.train.telemetry import Telemetry
from pretrain_jobs.train.throughput import Work

_log = logging.getLogger(__name__)


@dataclass
class Loop:
    """Everything that steps need. `telemetry` is None on all ranks but the first.

    `training` has its `max_steps`; `validation` gives this rank's evaluation batches anew.
    `made_before` is the last step that an earlier attempt has made, and perhaps lost.
    `total` is this attempt's work so far.
    """

    training: TrainingSpec
    save_when_stopped: bool
    ranks: Ranks
    engine: Engine
    keeper: Keeper
    ledger: Ledger
    goodput: Goodput
    stop: StopRequest
    validation: Callable[[], Iterator[Batch]]
    global_batch: int
    samples_per_epoch: int
    peak: float | None
    metrics: TrainingMetrics
    pace: Pace
    stragglers: Stragglers
    telemetry: Telemetry | None = None
    made_before: int = 0
    total: Work = field(default_factory=Work)

    def __post_init__(self) -> None:
        self._work = Work()
        self._worked = 0.0
        self._newest: dict[str, LogLine] = {}
        self._saving = Saving(self.keeper, self.goodput, self.metrics, self.telemetry)

    def run(self, progress: Progress, steps: Iterator[Step]) -> Progress:
        """Train to the last step and commit it.

        PreemptedError after a save if a rank was asked to stop, NonFiniteError after too many
        anomalies, and the storage's error if the last step could not be saved.
        """
        self._worked = self._seconds()
        self._newest = {name: newest_line(progress, name) for name in ("loss", "validation")}
        self.show(progress)
        if progress.evaluation_due:
            progress = self._finish(progress, Wishes())
        while progress.step < self._max_steps:
            before = self._seconds()
            with self.goodput.during("data_wait"), self.pace.waiting():
                step = next(steps)
            with self.goodput.during(self._category(progress)):
                progress, wishes = self._train(progress, step)
            self.metrics.stepped(self._seconds() - before)
            progress = self._finish(progress, wishes)
        return progress

    @property
    def _max_steps(self) -> int:
        return self.training.max_steps or 0

    def _category(self, progress: Progress) -> Category:
        """What the next step is to those who count useful time."""
        return "recompute" if progress.step < self.made_before else "step"

    def _train(self, progress: Progress, step: Step) -> tuple[Progress, Wishes]:
        """One optimizer step: the new state, with a line in the log where an interval ends."""
        number = progress.step + 1
        spec = self.training.anomalies
        self.pace.due = self._ends_interval(number)
        outcome = optimize(
            self.engine,
            self.ranks,
            step,
            learning_rate=learning_rate(
                number,
                peak=self.training.optimizer.learning_rate or 0.0,
                schedule=self.training.schedule,
                max_steps=self._max_steps,
            ),
            must_skip=lambda loss: must_skip(loss, progress.anomalies, spec),
            wishes=lambda: self._saving.wishes(stop=self.stop.requested),
            before_update=self._saving.before_update,
            pace=self.pace,
        )
        self.ledger.write(number, step)
        if not outcome.update.applied:
            self._tell_skipped(number, outcome, step)
        progress = self._advance(progress, step, outcome)
        require_finite(progress.anomalies, spec, step=number)
        return self._log_interval(progress, outcome), outcome.wishes

    def _advance(self, progress: Progress, step: Step, outcome: StepOutcome) -> Progress:
        """The state after a step, and its work added to this attempt's."""
        update = outcome.update
        self._work += Work(
            steps=1,
            tokens=outcome.tokens,
            operations=self.engine.flops.step(
                real_tokens=outcome.tokens.real, squared_lengths=outcome.squared_lengths
            ),
        )
        losses = progress.losses
        return replace(
            progress,
            step=progress.step + 1,
            cursor=step.cursor,
            samples=progress.samples + self.global_batch,
            tokens=progress.tokens + outcome.tokens,
            anomalies=after_step(
                progress.anomalies,
                loss=outcome.loss,
                applied=update.applied,
                rescaled=update.rescaled,
                spec=self.training.anomalies,
            ),
            losses=losses.with_step(outcome.loss) if update.applied else losses,
            evaluation_due=self._evaluates_after(progress.step + 1),
        )

    def _ends_interval(self, step: int) -> bool:
        return step % self.training.logging.interval_steps == 0 or step == self._max_steps

    def _log_interval(self, progress: Progress, outcome: StepOutcome) -> Progress:
        if not self._ends_interval(progress.step):
            return progress
        self._judge_pace(outcome)
        worked = self._seconds()
        work = replace(self._work, seconds=worked - self._worked)
        self.total += work
        self._work, self._worked = Work(), worked
        line = training_line(
            progress,
            learning_rate=self.engine.learning_rate,
            update=outcome.update,
            samples_per_epoch=self.samples_per_epoch,
            work=work,
            mfu=work.utilisation(peak=self.peak, world_size=self.ranks.world_size),
        )
        return replace(self._with_line(progress, line), losses=LossSum())

    def _judge_pace(self, outcome: StepOutcome) -> None:
        if outcome.shares and self.ranks.rank == 0:
            gathers = self.training.zero.stage == 3
            self.stragglers.judge(ratios(outcome.shares, gathers=gathers))

    def _finish(self, progress: Progress, wishes: Wishes) -> Progress:
        """After a step: evaluate and save if due, and stop if a rank wants to."""
        stop = wishes.stop
        self._saving.after_step(wishes)
        if progress.evaluation_due and not stop:
            progress, stop = self._evaluate(progress)
        self.show(progress)
        if stop:
            self._stop(progress)
        if progress.step == self._max_steps:
            self.show(progress, doing="saving the last step")
            self._saving.save_last(progress)
            self.show(progress)
        elif wishes.save or self.keeper.is_due(progress.step):
            self._saving.begin(progress)
        return progress

    def _evaluates_after(self, step: int) -> bool:
        every = self.training.evaluation.every_steps
        return step == self._max_steps or (every is not None and step % every == 0)

    def _evaluate(self, progress: Progress) -> tuple[Progress, bool]:
        """The state with the evaluation's line, and whether a rank wants to stop instead."""
        self.show(progress, doing="evaluating")
        with self.goodput.during("evaluation"):
            evaluation = evaluate(self.engine, self._alive(), self.ranks, self.stop)
        if evaluation.stopped:
            return progress, True
        if evaluation.result is not None:
            line = evaluation_line(progress.step, evaluation.result)
            progress = self._with_line(progress, line)
        return replace(progress, evaluation_due=False), False

    def _alive(self) -> Iterator[Batch]:
        """The evaluation's batches; each one that is asked for is a sign of life."""
        for batch in self.validation():
            self.goodput.enter("evaluation")
            yield batch

    def _stop(self, progress: Progress) -> None:
        result = None
        if self.save_when_stopped:
            result = self._saving.save(progress)
            self.show(progress)
        saved = what_is_saved(self.keeper.saver.latest, result)
        raise PreemptedError(f"stopped by SIGTERM after step {progress.step}; {saved}")

    def _with_line(self, progress: Progress, line: LogLine) -> Progress:
        self._newest |= {name: line for name in self._newest if name in line}
        if self.telemetry is not None:
            self.telemetry.line(line)
        return progress.with_line(line)

    def show(self, progress: Progress, *, doing: str = "") -> None:
        """Tell where training stands, and what is done between steps, in which none is late."""
        if self.telemetry is None:
            return
        status = training_status(
            progress,
            max_steps=self._max_steps,
            line=self._newest["loss"],
            evaluation=self._newest["validation"],
            slowest=self.stragglers.slowest,
        )
        latest = self.keeper.saver.latest
        self.telemetry.show(
            status,
            message=doing,
            checkpoint=latest,
            time_sheet=self.goodput.sheet,
            force=bool(doing),
        )
        self.metrics.show(
            Shown(status, progress, self._newest["validation"], self.total.operations, latest)
        )

    def _seconds(self) -> float:
        """Seconds that went into steps so far, waiting for their data included."""
        seconds = self.goodput.seconds
        return seconds["data_wait"] + sum(seconds[name] for name in STEPS)

    def _tell_skipped(self, number: int, outcome: StepOutcome, step: Step) -> None:
        reason = "loss" if not math.isfinite(outcome.loss) else "gradient"
        _log.warning(
            "step %d was skipped on all ranks (loss %s, gradient norm %s; look at the %s); "
            "samples of rank %d: %s",
            number,
            outcome.loss,
            outcome.update.gradient_norm,
            reason,
            self.ranks.rank,
            step.sample_ids.tolist(),
        )
