"""Deadlines and the time to live; each is met by the plan's own timer, without any event."""

from __future__ import annotations

from datetime import datetime, timedelta

from pretrain_api.spec import PretrainJobSpec
from pretrain_api.status import PretrainJobStatus

from pretrain_operator.plan.clocks import live_since
from pretrain_operator.plan.decision import Draft, Turn, Verdict
from pretrain_operator.plan.running import waits_to_begin
from pretrain_operator.plan.stages import current_stage


def enforce_deadlines(turn: Turn, draft: Draft) -> Draft:
    """Fail a job that is active, or has waited for its pods, for longer than it may."""
    spec = turn.job.spec
    if draft.verdict is not None or spec.suspend:
        return draft
    for due, verdict in (_active(turn, draft, spec), _pending(turn, draft, spec)):
        if due is not None and due <= turn.now:
            return draft.failed(verdict)
        draft = draft.waking_at(due)
    return draft


def expiry(status: PretrainJobStatus, spec: PretrainJobSpec) -> datetime | None:
    """When a finished job should be deleted; None when never."""
    if status.completion_time is None or spec.ttl_seconds_after_finished is None:
        return None
    return status.completion_time + timedelta(seconds=spec.ttl_seconds_after_finished)


_Deadline = tuple[datetime | None, Verdict]


def _active(turn: Turn, draft: Draft, spec: PretrainJobSpec) -> _Deadline:
    """Counts while pods run; neither waiting for them nor suspension is active time."""
    limit = spec.active_deadline_seconds
    verdict = Verdict("DeadlineExceeded", f"The job was active for longer than {limit} s.")
    if limit is None or not draft.live:
        return None, verdict
    left = timedelta(seconds=limit - draft.status.active_seconds)
    return live_since(turn) + left, verdict


def _pending(turn: Turn, draft: Draft, spec: PretrainJobSpec) -> _Deadline:
    """Counts from the creation of an attempt's Job, until all pods that it needs have run."""
    limit = spec.pending_deadline_seconds
    stage = current_stage(draft.status.stages)
    job = turn.attempt_of(stage) if stage else None
    sentence = f"Pods were pending for longer than {limit} s: {draft.blocked_by}"
    verdict = Verdict("PendingDeadlineExceeded", sentence)
    if limit is None or job is None or not waits_to_begin(job):
        return None, verdict
    return job.created_at + timedelta(seconds=limit), verdict
