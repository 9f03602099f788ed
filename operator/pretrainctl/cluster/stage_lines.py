"""How far a job is: its stages, training's figures, the newest checkpoint and the results; pure."""

from __future__ import annotations

from collections.abc import Iterator

from pretrain_api.reports import TrainingStatus
from pretrain_api.status import Phase, StageStatus

from pretrainctl.cluster.figures import age, bar
from pretrainctl.cluster.findings import Findings
from pretrainctl.local.figures import duration, training_figures

MARKS = {"Complete": "✓", "Failed": "✗", "Running": ">", "Skipped": "-", "Pending": "."}
NAME_WIDTH = 10

Lines = Iterator[str]


def stage_lines(findings: Findings) -> Lines:
    """A line for each stage."""
    for stage in findings.status.stages:
        yield f"{MARKS[stage.state]} {stage.name:{NAME_WIDTH}} {_state(stage, findings)}"


def training_lines(findings: Findings) -> Lines:
    """Step, loss, speed and what remains, as they were last told."""
    training = findings.status.training
    if training is None:
        return
    step = f"step {training.step:,}"
    if training.max_steps:
        step += f" of {training.max_steps:,}"
    figures = training_figures(_without_forecast(training, findings))
    yield f"{step}, {figures}" if figures else step


def checkpoint_lines(findings: Findings) -> Lines:
    """The newest committed checkpoint."""
    newest = findings.status.checkpoint
    if newest is not None:
        yield f"step {newest.step:,}, saved {age(newest.time, findings.now)} ago: {newest.uri}"


def result_lines(findings: Findings) -> Lines:
    """What evaluation found, and where the model lies."""
    metrics = findings.status.metrics
    for name, value in metrics.items():
        if name.endswith("/mean"):
            metric = name.removesuffix("/mean")
            yield f"{metric} {value:.3f} ± {metrics.get(f'{metric}/stdev', 0.0):.3f}"
    if findings.status.export_uri and findings.status.phase is Phase.COMPLETE:
        yield f"model at {findings.status.export_uri}"


def _without_forecast(training: TrainingStatus, findings: Findings) -> TrainingStatus:
    """Speed and time left mean something only while it trains."""
    if findings.status.phase is Phase.TRAINING:
        return training
    return training.model_copy(update={"tokens_per_second": None, "eta_seconds": None})


def _state(stage: StageStatus, findings: Findings) -> str:
    match stage.state:
        case "Complete" if stage.cached:
            return "done by an earlier job"
        case "Complete":
            return f"done{_took(stage)}{_attempts(stage)}"
        case "Running":
            return ", ".join(part for part in _running(stage, findings) if part)
        case "Failed":
            return f"failed in attempt {stage.attempt}"
        case "Skipped":
            return "left out"
    return "waits" if not stage.attempt else f"waits for attempt {stage.attempt}"


def _running(stage: StageStatus, findings: Findings) -> Lines:
    yield f"attempt {stage.attempt}"
    training = findings.status.training
    if stage.name == "train":
        workers = findings.status.workers
        yield f"{workers.ready} of {workers.desired} workers ready" if workers.desired else ""
        if training is not None and training.max_steps:
            yield bar(training.step / training.max_steps)
    elif stage.total > 1:
        yield f"{stage.succeeded} of {stage.total} slices done"
        yield bar(stage.succeeded / stage.total)
    else:
        yield stage.message
    yield f"begun {age(stage.start_time, findings.now)} ago" if stage.start_time else ""


def _took(stage: StageStatus) -> str:
    if stage.start_time is None or stage.completion_time is None:
        return ""
    return f" in {duration((stage.completion_time - stage.start_time).total_seconds())}"


def _attempts(stage: StageStatus) -> str:
    return f", by attempt {stage.attempt}" if stage.attempt else ""
