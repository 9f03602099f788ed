"""A stage's way through an attempt: begun, running, complete; what status tells of it."""

from __future__ import annotations

from datetime import datetime

from pretrain_api.status import StageStatus

from pretrain_operator.observed import ObservedJob
from pretrain_operator.plan.attempts import Succeeded
from pretrain_operator.plan.clocks import with_begun_training, with_wait_for_training
from pretrain_operator.plan.decision import MESSAGE_LIMIT, Draft, Turn
from pretrain_operator.plan.goodput import with_end, with_told_time
from pretrain_operator.plan.progress import with_final_step
from pretrain_operator.plan.stages import with_artifacts


def is_live(job: ObservedJob) -> bool:
    """Whether an attempt runs: all of a gang, rank 0 included, or any pod of another stage.

    Pods that have succeeded count: the attempt is over only once its Job says so.
    """
    there = {
        pod.index
        for pod in job.pods
        if pod.phase == "Succeeded" or (pod.phase == "Running" and not pod.deleting)
    }
    if job.stage == "train":
        return 0 in there and not missing_pods(job)
    return bool(there) or job.succeeded > 0


def missing_pods(job: ObservedJob) -> list[int]:
    """Indexes of an attempt that neither run nor have succeeded."""
    there = {pod.index for pod in job.pods if pod.phase in {"Running", "Succeeded"}}
    return [index for index in range(job.completions) if index not in there]


def waits_to_begin(job: ObservedJob) -> bool:
    """Whether pods are missing without which it has not begun: any of a gang, all of a stage."""
    missing = missing_pods(job)
    return bool(missing) if job.stage == "train" else len(missing) == job.completions


def with_begun_stage(turn: Turn, draft: Draft, stage: StageStatus) -> Draft:
    """Tell that an attempt has begun, once its Job is there; having applied it is no proof."""
    job = turn.attempt_of(stage)
    if job is None:
        return draft
    draft = _with_start_time(turn, draft, job)
    if stage.state == "Running":
        return draft
    if stage.name == "train":
        before = turn.job.status.checkpoint
        draft = draft.with_status(attempt_start_step=before.step if before else 0)
        draft = draft.with_stage("train", total=job.completions)
        draft = with_begun_training(turn, draft, job)
    return draft.with_stage(
        stage.name,
        state="Running",
        start_time=stage.start_time or job.created_at,
        retry_time=None,
    )


def with_completed_stage(turn: Turn, draft: Draft, stage: StageStatus, done: Succeeded) -> Draft:
    """Take over a stage's result; the tokenizer's tells about all later stages."""
    result = done.result
    completed_at = done.job.finished_at or turn.now
    draft = draft.with_stage(
        stage.name,
        state="Complete",
        completion_time=completed_at,
        succeeded=stage.total,
        message=" ".join(result.warnings)[:MESSAGE_LIMIT],
    )
    draft = draft.with_event("Normal", "StageCompleted", _completion(stage, completed_at))
    draft = draft.with_status(metrics={**draft.status.metrics, **result.metrics})
    if stage.name == "train":
        draft = with_final_step(draft.with_status(no_progress_attempts=0), result.step)
        draft = with_wait_for_training(turn, draft, done.job)
        draft = with_told_time(draft, result.time_sheet, step=result.step)
        draft = with_end(draft, completed_at)
    if stage.name == "tokenizer":
        return _with_reuse(draft.with_status(stages=with_artifacts(draft.status.stages, result)))
    return draft


def _with_start_time(turn: Turn, draft: Draft, job: ObservedJob) -> Draft:
    """A job starts when its first pod runs; a stage may end without having been seen running."""
    if draft.status.start_time is not None:
        return draft
    runs = any(pod.phase == "Running" for pod in job.pods) or job.succeeded > 0
    if not runs and job.condition is None:
        return draft
    starts = [pod.started_at for pod in job.pods if pod.started_at]
    return draft.with_status(start_time=min(starts, default=turn.now))


def _completion(stage: StageStatus, completed_at: datetime) -> str:
    if stage.start_time is None:
        return f"{stage.name} is complete."
    seconds = (completed_at - stage.start_time).total_seconds()
    return f"{stage.name} is complete after {seconds:.0f} s."


def _with_reuse(draft: Draft) -> Draft:
    reused = [s.name for s in draft.status.stages if s.cached and s.name != "tokenizer"]
    if not reused:
        return draft
    text = f"Committed by an earlier run and not run again: {', '.join(reused)}."
    return draft.with_event("Normal", "StagesReused", text)
