"""Suspending and resuming: no children while suspended, and no budget is used up."""

from __future__ import annotations

from datetime import datetime

from pretrain_api.status import Condition, PretrainJobStatus, StageStatus

from pretrain_operator.plan.clocks import with_wait_broken_off
from pretrain_operator.plan.decision import DONE_STATES, Draft, Turn
from pretrain_operator.plan.goodput import with_suspended_time


def suspended_since(status: PretrainJobStatus) -> datetime | None:
    """When the job was suspended, if it still was at the last plan."""
    condition = next((c for c in status.conditions if c.type == "Suspended"), None)
    return _since(condition) if condition else None


def begin_suspension(turn: Turn, draft: Draft, stage: StageStatus) -> Draft:
    """Give up the current attempt, if it was started; the next one resumes its work.

    Its pods get their grace period, in which training saves a last checkpoint.
    """
    if suspended_since(draft.status) is None:
        text = "The job is suspended; its pods are told to end."
        draft = draft.with_event("Normal", "Suspended", text)
        draft = with_wait_broken_off(turn, draft) if stage.name == "train" else draft
    if stage.state != "Running" and turn.attempt_of(stage) is None:
        return draft
    return draft.with_next_attempt(stage, message="", retry_time=turn.now)


def end_suspension(turn: Turn, draft: Draft) -> Draft:
    """Account for the time of a suspension that is over."""
    since = suspended_since(draft.status)
    if since is None or turn.job.spec.suspend:
        return draft
    seconds = round((turn.now - since).total_seconds())
    draft = draft.with_event("Normal", "Resumed", f"The job goes on after {seconds} s.")
    draft = draft.with_status(suspended_seconds=draft.status.suspended_seconds + seconds)
    if draft.stage("train").state in DONE_STATES:
        return draft
    goodput = with_suspended_time(draft.status.goodput, seconds, turn.now)
    return draft.with_status(goodput=goodput)


def _since(condition: Condition) -> datetime | None:
    return condition.last_transition_time if condition.status == "True" else None
