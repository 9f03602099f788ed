"""What follows when the API server refuses a child, or the pods of a child Job.

A spec that cannot be admitted is told as Accepted=False and waits for an edit; status remembers
it, so that a restarted operator does not try again. What may pass by itself is tried again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from pretrain_api.reports import Cause
from pretrain_api.status import StageStatus

from pretrain_operator.observed import ObservedJob, Refusal
from pretrain_operator.plan.admission import cause_of_refusal
from pretrain_operator.plan.conditions import find_condition
from pretrain_operator.plan.decision import MESSAGE_LIMIT, Draft, Turn
from pretrain_operator.plan.early import is_asked

FIRST_GAP = timedelta(seconds=10)
LONGEST_GAP = timedelta(minutes=5)
"""Between tries of a child that was refused for a reason that may pass; the gap doubles."""

_ADVICE = "Correct the spec; it is tried again then."


def with_refused_edit(turn: Turn, draft: Draft, sentence: str) -> Draft:
    """Keep what is wrong with an edited spec, if anything; one event for each such sentence."""
    before = find_condition(turn.job.status, "Accepted")
    if sentence and (before is None or before.message != sentence):
        text = f"The edited spec cannot be run: {sentence}"
        draft = draft.with_event("Warning", "EditRefused", text)
    return replace(draft, refused=sentence)


def with_standing_denial(turn: Turn, draft: Draft) -> Draft | None:
    """Stay as it is while the spec is the one that was denied; None when nothing was.

    Unless another try is asked for: what denied it may have been changed itself.
    """
    accepted = find_condition(turn.job.status, "Accepted")
    if accepted is None or accepted.reason != Cause.ADMISSION_DENIED.value:
        return None
    if accepted.observed_generation != turn.job.metadata.generation or is_asked(turn):
        return None
    return _denied(draft, accepted.message)


def with_refused_child(turn: Turn, draft: Draft, stage: StageStatus) -> Draft | None:
    """Answer a refusal of one of the attempt's own children; None when it may be applied."""
    refusal = refusal_of(turn, stage)
    if refusal is None:
        return None
    if is_asked(turn) and refusal.at < turn.now:
        return None
    cause = cause_of_refusal(refusal.message, code=refusal.code)
    if cause is Cause.ADMISSION_DENIED:
        return _deny(draft, stage, _sentence(f"the {refusal.kind}", stage, refusal.message))
    until = tried_again_at(refusal)
    if until <= turn.now:
        return None
    sentence = _sentence(f"the {refusal.kind}", stage, refusal.message)
    draft = with_wait_event(turn, draft, cause.value, sentence)
    return replace(draft, blocked_by=sentence, waits_for=cause.value).waking_at(until)


def with_refused_pods(draft: Draft, stage: StageStatus, job: ObservedJob) -> Draft | None:
    """Give up an attempt whose pods will never be admitted; None when they may be."""
    if not lacks_pods(job) or cause_of_refusal(job.pods_refused) is not Cause.ADMISSION_DENIED:
        return None
    return _deny(draft, stage, _sentence("the pods", stage, job.pods_refused))


def with_wait_event(turn: Turn, draft: Draft, reason: str, sentence: str) -> Draft:
    """One event when a wait begins; the condition Running remembers that it has."""
    running = find_condition(turn.job.status, "Running")
    if running is not None and running.reason == reason:
        return draft
    return draft.with_event("Warning", reason, sentence)


def lacks_pods(job: ObservedJob) -> bool:
    """Whether pods of a Job were refused that it still lacks."""
    if not job.pods_refused or job.condition is not None:
        return False
    if job.stage == "train":
        return len({pod.index for pod in job.pods}) < job.completions
    return not any(pod.phase in {"Pending", "Running"} for pod in job.pods)


def retry_gap(count: int) -> timedelta:
    """The wait after the n-th refusal in a row."""
    doublings: int = min(count - 1, 16)
    return min(FIRST_GAP * (1 << doublings), LONGEST_GAP)


def tried_again_at(refusal: Refusal) -> datetime:
    """When a child that was refused is applied once more."""
    return refusal.at + retry_gap(refusal.count)


def refusal_of(turn: Turn, stage: StageStatus) -> Refusal | None:
    """The last refusal of the current attempt's children, made from the spec as it is now."""
    wanted = (stage.name, stage.attempt, turn.job.metadata.generation)
    mine = [r for r in turn.observed.refusals if (r.stage, r.attempt, r.generation) == wanted]
    return max(mine, key=lambda refusal: refusal.at, default=None)


def _sentence(what: str, stage: StageStatus, message: str) -> str:
    text = f"The API server refuses {what} of attempt {stage.attempt} of {stage.name}: {message}"
    return text[:MESSAGE_LIMIT]


def _deny(draft: Draft, stage: StageStatus, sentence: str) -> Draft:
    """The next try has another number, so that it shares nothing with what is being deleted."""
    draft = draft.with_event("Warning", Cause.ADMISSION_DENIED.value, sentence)
    draft = draft.with_next_attempt(stage, message=sentence, retry_time=None)
    return _denied(draft, sentence)


def _denied(draft: Draft, sentence: str) -> Draft:
    return replace(
        draft,
        denied=sentence,
        blocked_by=f"{sentence} {_ADVICE}",
        waits_for=Cause.ADMISSION_DENIED.value,
    )
