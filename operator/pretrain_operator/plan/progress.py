"""Figures of a running attempt, taken over into status; nothing is decided here."""

from __future__ import annotations

from collections.abc import Iterator

from pretrain_api.reports import CheckpointStatus, StageProgress, TrainingStatus
from pretrain_api.status import MAX_WORKER_NODES, StageStatus, WorkersStatus

from pretrain_operator.children.names import gang_selector
from pretrain_operator.observed import ObservedJob
from pretrain_operator.plan.decision import Draft, Turn
from pretrain_operator.plan.goodput import with_told_time

SIGNIFICANT_DIGITS = 5
"""Of figures in status: more would say nothing, and be in the way in a table."""

_UNITS = {"d": (86_400, 3600, "h"), "h": (3600, 60, "m"), "m": (60, 60, "")}
"""Seconds of a unit and of the one below, which is told beside it."""


def with_newest_checkpoint(turn: Turn, draft: Draft) -> Draft:
    """Take over a newer commit; its step never goes back.

    Only the newest attempt that was started counts: an older one may live on in a lost node,
    and what it commits is not resumed from.
    """
    newest = _newest_attempt(turn, draft.stage("train"))
    commits = [draft.status.checkpoint, *_commits(turn, newest)]
    known = [commit for commit in commits if commit is not None]
    return draft.with_status(checkpoint=max(known, key=lambda commit: commit.step, default=None))


def with_progress(
    turn: Turn, draft: Draft, stage: StageStatus, job: ObservedJob, *, live: bool
) -> Draft:
    """Take over what the current attempt's indexes last told of themselves.

    Why the attempt before ended stays told until this one runs.
    """
    progress = [p for p in turn.observed.progress if _is_of(p, stage)]
    succeeded = min(job.succeeded, stage.total)
    begins = not progress and not live
    message = stage.message if begins else _message(stage, progress, succeeded)
    draft = draft.with_stage(stage.name, succeeded=succeeded, message=message)
    training = next((p.training for p in progress if p.index == 0 and p.training), None)
    return draft.with_status(training=_rounded(training)) if training else draft


def with_told_progress(turn: Turn, draft: Draft, stage: StageStatus) -> Draft:
    """Take over the time that rank 0 told last, also of an attempt that has just ended."""
    for progress in turn.observed.progress:
        if stage.name == "train" and _is_of(progress, stage) and progress.index == 0:
            step = progress.training.step if progress.training else None
            draft = with_told_time(draft, progress.time_sheet, step=step)
    return draft


def eta(training: TrainingStatus | None) -> str:
    """The time that remains, in two units at most: 45s, 12m, 2h5m, 3d4h; empty when unknown."""
    if training is None or training.eta_seconds is None:
        return ""
    seconds = round(training.eta_seconds)
    for unit, (size, smaller, name) in _UNITS.items():
        if seconds >= size:
            rest = seconds % size // smaller
            return f"{seconds // size}{unit}{f'{rest}{name}' if rest else ''}"
    return f"{seconds}s"


def with_final_step(draft: Draft, step: int | None) -> Draft:
    """The step at which training completed, whatever the last progress said.

    `step` is that of its result; where that is lost, training has made all its steps.
    """
    training = draft.status.training
    if step is not None:
        training = training or TrainingStatus(max_steps=step)
        return draft.with_status(training=training.model_copy(update={"step": step}))
    if training is None or training.max_steps == 0:
        return draft
    return draft.with_status(training=training.model_copy(update={"step": training.max_steps}))


def with_workers(turn: Turn, draft: Draft) -> Draft:
    """The gang as the scale subresource reads it, and where one last ran whole."""
    attempt = turn.attempt_of(draft.stage("train"))
    pods = attempt.pods if attempt else ()
    running = [pod for pod in pods if pod.phase == "Running" and not pod.deleting]
    is_whole = attempt is not None and len({pod.index for pod in running}) >= attempt.completions
    nodes = sorted({pod.node for pod in running if pod.node}) if is_whole else []
    workers = WorkersStatus(
        ready=len(running),
        desired=turn.job.spec.workers.replicas,
        selector=gang_selector(turn.job),
        nodes=nodes[:MAX_WORKER_NODES] or draft.status.workers.nodes,
    )
    return draft.with_status(workers=workers)


def _rounded(training: TrainingStatus) -> TrainingStatus:
    figures = {
        name: float(f"{value:.{SIGNIFICANT_DIGITS}g}")
        for name, value in training
        if isinstance(value, float)
    }
    return training.model_copy(update=figures)


def _newest_attempt(turn: Turn, train: StageStatus) -> int:
    """The current attempt, or the one before it as long as the current one has no Job."""
    return train.attempt if turn.attempt_of(train) else train.attempt - 1


def _commits(turn: Turn, attempt: int) -> Iterator[CheckpointStatus | None]:
    for progress in turn.observed.progress:
        if progress.stage == "train" and progress.attempt == attempt:
            yield progress.checkpoint
    for job in turn.observed.jobs:
        if (job.stage, job.attempt) == ("train", attempt):
            reports = [pod.report for pod in job.pods if pod.report]
            yield from (report.result.checkpoint for report in reports if report.result)
    for report in turn.observed.last_words:
        if (report.stage, report.attempt) == ("train", attempt) and report.result:
            yield report.result.checkpoint


def _is_of(progress: StageProgress, stage: StageStatus) -> bool:
    return (progress.stage, progress.attempt) == (stage.name, stage.attempt)


def _message(stage: StageStatus, progress: list[StageProgress], succeeded: int) -> str:
    """The process's own words, else how much is done, else how many pods have succeeded."""
    if len(progress) == 1 and progress[0].message:
        return progress[0].message
    totals = [p.total for p in progress if p.total is not None]
    if progress and len(totals) == len(progress):
        done, unit = sum(p.done for p in progress), progress[0].unit
        return f"{done:.15g} of {sum(totals):.15g} {unit}".rstrip()
    return f"{succeeded} of {stage.total} done" if stage.total > 1 else ""
