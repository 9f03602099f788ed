"""Figures as people read them: durations, rates and how far a stage is; pure."""

from __future__ import annotations

from pretrain_api.reports import LATE_RATIO, StageProgress, TrainingStatus
from pretrain_api.status import StageStatus


def duration(seconds: float) -> str:
    """`7s`, `1m05s`, `2h03m`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s"
    if whole < 3600:
        return f"{whole // 60}m{whole % 60:02d}s"
    return f"{whole // 3600}h{whole % 3600 // 60:02d}m"


def quantity(value: float) -> str:
    """`950`, `21.3k`, `1.2M`, `3.4G`."""
    for limit, divisor, unit in ((1e3, 1, ""), (1e6, 1e3, "k"), (1e9, 1e6, "M")):
        if abs(value) < limit:
            return f"{value / divisor:.0f}" if divisor == 1 else f"{value / divisor:.1f}{unit}"
    return f"{value / 1e9:.1f}G"


def training_figures(training: TrainingStatus) -> str:
    """`loss 4.12, validation 4.30, 21.3k tokens/s, 1m05s left`, as far as known."""
    parts = []
    if training.loss is not None:
        parts.append(f"loss {training.loss:.3f}")
    if training.validation_loss is not None:
        parts.append(f"validation {training.validation_loss:.3f}")
    if training.tokens_per_second is not None:
        parts.append(f"{quantity(training.tokens_per_second)} tokens/s")
    if training.eta_seconds is not None:
        parts.append(f"{duration(training.eta_seconds)} left")
    if training.slowest_ratio is not None and training.slowest_ratio > LATE_RATIO:
        parts.append(f"rank {training.slowest_rank} {training.slowest_ratio:.1f} times the median")
    if training.skipped_steps:
        parts.append(f"{training.skipped_steps} steps skipped")
    return ", ".join(parts)


def ratio(stage: StageStatus, progress: tuple[StageProgress, ...]) -> float | None:
    """Share of a running stage that is done, from 0 to 1; None while nobody can tell.

    Only preprocessing has pods that each do a part; all ranks of a gang do the same steps.
    """
    running = [item for item in progress if item.stage == stage.name and item.total]
    shares = [min(1.0, item.done / item.total) for item in running if item.total]
    if stage.name != "preprocess":
        return shares[0] if shares else None
    unfinished = stage.total - stage.succeeded
    return (stage.succeeded + min(sum(shares), unfinished)) / stage.total


def progress_text(stage: StageStatus, progress: tuple[StageProgress, ...]) -> str:
    """What a running stage says of itself: `1,200/2,500 steps, loss 4.12, ...`."""
    mine = [item for item in progress if item.stage == stage.name]
    if not mine:
        return "starting"
    parts = []
    if stage.name == "preprocess":
        parts.append(f"{stage.succeeded}/{stage.total} slices")
    elif mine[0].total and mine[0].unit != "bytes":
        parts.append(f"{mine[0].done:,.0f}/{mine[0].total:,.0f} {mine[0].unit}".rstrip())
    training = next((item.training for item in mine if item.training is not None), None)
    if training is not None:
        parts.append(training_figures(training))
    elif mine[0].message:
        parts.append(mine[0].message)
    return ", ".join(part for part in parts if part)
