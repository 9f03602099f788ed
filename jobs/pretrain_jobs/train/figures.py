"""The figures of rank 0 as the log and the progress file show them: built, not written."""

from __future__ import annotations

import math
from dataclasses import asdict

from pretrain_api.reports import TrainingStatus

from pretrain_jobs.train.engine import Update
from pretrain_jobs.train.evaluation import EvaluationResult
from pretrain_jobs.train.state import LogLine, Progress
from pretrain_jobs.train.throughput import Work


def training_line(
    progress: Progress,
    *,
    learning_rate: float,
    update: Update,
    samples_per_epoch: int,
    work: Work,
    mfu: float | None,
) -> LogLine:
    """The line of an interval that ends with this step; `loss` is the mean over its steps."""
    return {
        "step": progress.step,
        "epoch": progress.cursor.consumed / samples_per_epoch,
        "loss": progress.losses.mean,
        "learningRate": learning_rate,
        "gradientNorm": finite(update.gradient_norm),
        "skippedSteps": progress.anomalies.skipped,
        "spikes": progress.anomalies.spikes,
        "tokens": asdict(progress.tokens),
        "tokensPerSecond": work.tokens_per_second,
        "stepSeconds": work.seconds / work.steps if work.steps else None,
        "mfu": mfu,
    }


def evaluation_line(step: int, result: EvaluationResult) -> LogLine:
    """The line of an evaluation after this step."""
    values = {name: finite(value) for name, value in asdict(result).items()}
    return {"step": step, "validation": values}


def newest_line(progress: Progress, name: str) -> LogLine:
    """The newest line of the log that has a figure of this name; empty if there is none."""
    return next((line for line in reversed(progress.log) if name in line), {})


def training_status(
    progress: Progress,
    *,
    max_steps: int,
    line: LogLine,
    evaluation: LogLine,
    slowest: tuple[int, float] | None = None,
) -> TrainingStatus:
    """What status and progress bars show, with the figures of the newest lines of both kinds.

    `slowest` is a rank and its time over the median's.
    """
    rank, ratio = slowest or (None, None)
    validation = evaluation.get("validation", {})
    seconds = line.get("stepSeconds")
    return TrainingStatus(
        step=progress.step,
        max_steps=max_steps,
        epoch=line.get("epoch", 0.0),
        loss=line.get("loss"),
        validation_loss=validation.get("loss"),
        learning_rate=line.get("learningRate"),
        gradient_norm=line.get("gradientNorm"),
        tokens_per_second=line.get("tokensPerSecond", {}).get("real"),
        mfu=line.get("mfu"),
        eta_seconds=None if seconds is None else seconds * (max_steps - progress.step),
        skipped_steps=progress.anomalies.skipped,
        slowest_rank=rank,
        slowest_ratio=ratio,
    )


def finite(value: float) -> float | None:
    """The value, or None (JSON has no infinity)."""
    return value if math.isfinite(value) else None
