"""What follows an attempt's end: another attempt after a wait, or the job's failure."""

from __future__ import annotations

from datetime import datetime

from pretrain_api.spec.lifecycle import FailurePolicySpec
from pretrain_api.status import PretrainJobStatus, StageStatus

from pretrain_operator.plan.budgets import backoff, count_no_progress, exhausted
from pretrain_operator.plan.decision import Draft, Verdict
from pretrain_operator.plan.pod_failures import Failure
from pretrain_operator.plan.quarantine import with_suspect_node


def end_attempt(
    draft: Draft, stage: StageStatus, failure: Failure, *, policy: FailurePolicySpec, now: datetime
) -> Draft:
    """Account for a failed attempt: the next one under a new number, or a verdict.

    Only a restart that is granted is counted in `restarts`.
    """
    no_progress = _no_progress(draft.status, stage, failure)
    draft = draft.with_status(no_progress_attempts=no_progress)
    end = exhausted(failure, restarts=draft.status.restarts, no_progress=no_progress, policy=policy)
    if end is None:
        return _retry(draft, stage, failure, policy=policy, now=now)
    draft = _announce(draft, stage, failure, outlook="There is no further attempt.")
    return draft.failed(Verdict(reason=end.reason.value, sentence=end.sentence))


def _no_progress(status: PretrainJobStatus, stage: StageStatus, failure: Failure) -> int:
    if stage.name != "train":
        return 0
    newest = status.checkpoint.step if status.checkpoint else 0
    return count_no_progress(
        status.no_progress_attempts,
        attempt=stage.attempt,
        progressed=newest > status.attempt_start_step,
        cause=failure.cause,
    )


def _retry(
    draft: Draft, stage: StageStatus, failure: Failure, *, policy: FailurePolicySpec, now: datetime
) -> Draft:
    """The wait counts from the attempt's end, not from when that was noticed."""
    name = failure.cause.value
    restart = draft.status.restarts.get(name, 0) + 1
    wait = backoff(restart, cause=failure.cause, policy=policy.backoff)
    retry_time = min(failure.at or now, now) + wait
    draft = _announce(
        draft,
        stage,
        failure,
        outlook=f"Attempt {stage.attempt + 1} follows after {wait.total_seconds():g} s.",
    )
    draft = draft.with_status(restarts={**draft.status.restarts, name: restart})
    draft = with_suspect_node(draft, stage, failure, policy=policy.quarantine, now=now)
    return draft.waking_at(retry_time).with_next_attempt(
        stage, message=failure.sentence, retry_time=retry_time
    )


def _announce(draft: Draft, stage: StageStatus, failure: Failure, *, outlook: str) -> Draft:
    text = f"Attempt {stage.attempt} of {stage.name} ended with {failure.cause.value}"
    return draft.with_event("Warning", "AttemptFailed", f"{text}. {outlook} {failure.sentence}")
