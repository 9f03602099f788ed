"""Samples of a rank's training, made from what the loop has anyway when somebody scrapes.

A step costs two assignments here. Names of metrics are not known here but in `telemetry.families`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from pretrain_api.reports import CheckpointStatus, TrainingStatus

from pretrain_jobs.telemetry import families
from pretrain_jobs.telemetry.samples import Histogram, Sample
from pretrain_jobs.train.anomalies import AnomalyState
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.pace import Stragglers
from pretrain_jobs.train.resume import Resumption
from pretrain_jobs.train.state import LogLine, Progress, TokenCounts

_EVALUATION_FIGURES = ("accuracy",)


@dataclass(frozen=True)
class Shown:
    """Where rank 0 says that training stands after a step.

    `evaluation` is the newest evaluation's line, empty before the first; `operations` are this
    attempt's up to the last line of the log.
    """

    status: TrainingStatus
    progress: Progress
    evaluation: LogLine
    operations: float
    checkpoint: CheckpointStatus | None


class TrainingMetrics:
    """A source of one rank's samples; only rank 0 is shown where training stands."""

    def __init__(
        self,
        resumption: Resumption,
        *,
        goodput: Goodput,
        stragglers: Stragglers,
        device: torch.device,
        skips_spikes: bool,
        clock: Callable[[], float],
    ) -> None:
        """`skips_spikes` tells what becomes of loss spikes; the clock gives seconds since 1970."""
        self._resumed = resumption.progress.step > 0
        self._damaged = resumption.damaged
        self._source = resumption.source
        self._keeper = resumption.keeper
        self._goodput = goodput
        self._stragglers = stragglers
        self._device = device
        self._skips_spikes = skips_spikes
        self._clock = clock
        self._steps = Histogram(families.STEP_DURATION)
        self._stalls = Histogram(families.CHECKPOINT_STALL)
        self._writes = Histogram(families.CHECKPOINT_WRITE)
        self._saved_bytes = 0
        self._stepped_at: float | None = None
        self._recovery: float | None = None
        self._shown: Shown | None = None

    def stepped(self, seconds: float) -> None:
        """A step ended that took so long."""
        self._steps.observe(seconds)
        self._stepped_at = self._clock()
        if self._recovery is None:
            self._recovery = sum(self._goodput.seconds.values())

    def stalled(self, seconds: float) -> None:
        """Training stood still so long for a checkpoint."""
        self._stalls.observe(seconds)

    def saved(self, seconds: float, *, size: int) -> None:
        """A checkpoint of so many bytes was committed, which took its writers so long."""
        self._writes.observe(seconds)
        self._saved_bytes += size

    def show(self, shown: Shown) -> None:
        """Take note of where training stands."""
        self._shown = shown

    def samples(self) -> Iterator[Sample]:
        """Samples of this moment."""
        yield from self._rank_samples()
        if self._shown is not None:
            yield from self._time_samples()
            yield from self._straggler_samples()
            yield from self._checkpoint_samples(self._shown.checkpoint)
            yield from step_samples(self._shown)
            yield from learning_samples(self._shown, skips_spikes=self._skips_spikes)

    def _rank_samples(self) -> Iterator[Sample]:
        yield self._steps.sample()
        yield Sample(families.LAST_STEP, self._stepped_at)
        yield Sample(families.DATA_WAIT, self._goodput.seconds["data_wait"])
        if self._device.type == "cuda":
            peak = torch.cuda.max_memory_allocated(self._device)
            yield Sample(families.ACCELERATOR_MEMORY, peak)

    def _time_samples(self) -> Iterator[Sample]:
        seconds = self._goodput.seconds
        for category, spent in seconds.items():
            yield Sample(families.JOB_TIME, spent, (category,))
        yield Sample(families.GOODPUT, self._goodput.ratio)
        yield Sample(families.RECOVERY, self._recovery)
        if self._resumed:
            yield Sample(families.RESTORE, seconds["restore"], (self._source,))

    def _straggler_samples(self) -> Iterator[Sample]:
        for rank, ratio in enumerate(self._stragglers.newest):
            yield Sample(families.STRAGGLER, ratio, (str(rank),))

    def _checkpoint_samples(self, latest: CheckpointStatus | None) -> Iterator[Sample]:
        yield self._stalls.sample()
        yield self._writes.sample()
        yield Sample(families.CHECKPOINT_BYTES, self._saved_bytes)
        yield Sample(families.CHECKPOINT_FAILURES, self._keeper.saver.failures)
        yield Sample(families.CHECKPOINT_SKIPPED, self._keeper.skipped)
        yield Sample(families.CHECKPOINT_CORRUPT, self._damaged)
        if latest is not None:
            yield Sample(families.CHECKPOINT_STEP, latest.step)
            yield Sample(families.CHECKPOINT_TIME, latest.time.timestamp())


def step_samples(shown: Shown) -> Iterator[Sample]:
    """Steps, and what went through the model in them."""
    status, progress = shown.status, shown.progress
    yield Sample(families.GLOBAL_STEP, status.step)
    yield Sample(families.TARGET_STEPS, status.max_steps)
    yield Sample(families.ETA, status.eta_seconds)
    for kind, count in _kinds(progress.tokens).items():
        yield Sample(families.TOKENS, count, (kind,))
    yield Sample(families.SAMPLES, progress.samples)
    if progress.tokens.positions:
        efficiency = progress.tokens.real / progress.tokens.positions
        yield Sample(families.PACKING_EFFICIENCY, efficiency)
    yield Sample(families.MODEL_FLOPS, shown.operations)
    yield Sample(families.MFU, status.mfu)


def learning_samples(shown: Shown, *, skips_spikes: bool) -> Iterator[Sample]:
    """Losses, the optimizer's figures, and what went wrong."""
    status, anomalies = shown.status, shown.progress.anomalies
    yield Sample(families.LOSS, status.loss, ("train",))
    yield Sample(families.LOSS, status.validation_loss, ("validation",))
    yield Sample(families.GRADIENT_NORM, status.gradient_norm)
    yield Sample(families.LEARNING_RATE, status.learning_rate)
    for reason, count in skipped_by_reason(anomalies, skips_spikes=skips_spikes).items():
        yield Sample(families.SKIPPED_STEPS, count, (reason,))
    yield Sample(families.LOSS_SPIKES, anomalies.spikes)
    yield Sample(families.NON_FINITE, anomalies.non_finite)
    figures: Mapping[str, Any] = shown.evaluation.get("validation", {})
    for name in _EVALUATION_FIGURES:
        yield Sample(families.EVALUATION_METRIC, figures.get(name), ("validation", "", name))


def skipped_by_reason(anomalies: AnomalyState, *, skips_spikes: bool) -> dict[str, int]:
    """Why steps were left out. What is neither a spike nor non-finite was fp16's loss scale."""
    spikes = anomalies.spikes if skips_spikes else 0
    return {
        "non_finite": anomalies.non_finite,
        "spike": spikes,
        "loss_scale": anomalies.skipped - anomalies.non_finite - spikes,
    }


def _kinds(tokens: TokenCounts) -> dict[str, int]:
    return {"position": tokens.positions, "real": tokens.real, "loss": tokens.loss}
