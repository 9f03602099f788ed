"""Children that an attempt needs and somebody has deleted are made again, once for each loss.

Its Job is another matter: an attempt without one has failed. What has ended, or is about to end,
needs nothing any more.
"""

from __future__ import annotations

from dataclasses import replace

from pretrain_api.status import StageStatus

from pretrain_operator.children.bundle import build_attempt
from pretrain_operator.observed import ChildKind, ObservedJob
from pretrain_operator.plan.decision import Draft, Turn
from pretrain_operator.plan.edited import is_older
from pretrain_operator.plan.refused import refusal_of, tried_again_at
from pretrain_operator.plan.running import missing_pods
from pretrain_operator.plan.starting import attempt_to_build


def with_lost_children(turn: Turn, draft: Draft, stage: StageStatus, job: ObservedJob) -> Draft:
    """Apply what an attempt has lost, with an event; what the API server refuses is told."""
    lost = _lost(turn, job)
    if not lost or _ends(job):
        return draft
    subject = f"The {' and the '.join(lost)} {job.name} of attempt {stage.attempt} of {stage.name}"
    gone = f"{subject} was deleted from outside"
    if draft.refused:
        return _told(draft, f"{gone}; it is made again once the spec is valid.")
    if "ConfigMap" in lost and is_older(turn, job):
        text = f"{gone}, and the spec was edited since: the next attempt is made from it."
        draft = draft.with_event("Warning", "AttemptReplaced", text)
        draft = replace(draft, live=False, blocked_by=text)
        return draft.with_next_attempt(stage, message=text, retry_time=turn.now)
    refusal = refusal_of(turn, stage)
    if refusal is not None and turn.now < (until := tried_again_at(refusal)):
        text = f"{gone}, and the API server refuses another: {refusal.message}"
        return _told(draft, text).waking_at(until)
    draft = draft.with_event("Warning", "ChildMadeAgain", f"{gone}; it is made again.")
    attempt = attempt_to_build(turn, draft, stage, size=job.completions)
    made = [manifest for manifest in build_attempt(attempt) if manifest["kind"] in lost]
    return replace(draft, apply=(*draft.apply, *made))


def _lost(turn: Turn, job: ObservedJob) -> list[ChildKind]:
    """Kinds of the children that are gone, in the order in which they are made.

    Pods that run have read their config. From an edited spec it could not be made as it was.
    """
    lost: list[ChildKind] = []
    if job.stage == "train" and job.completions > 1 and job.name not in turn.observed.services:
        lost.append("Service")
    is_needed = bool(missing_pods(job)) or not is_older(turn, job)
    if is_needed and job.name not in turn.observed.config_maps:
        lost.append("ConfigMap")
    return lost


def _ends(job: ObservedJob) -> bool:
    """Whether an attempt has ended or is ending; slices end one by one."""
    if job.condition not in {None, "Suspended"} or job.deleting:
        return True
    succeeded = job.succeeded > 0 or any(pod.phase == "Succeeded" for pod in job.pods)
    return job.stage != "preprocess" and succeeded


def _told(draft: Draft, sentence: str) -> Draft:
    return replace(draft, blocked_by=f"{sentence} {draft.blocked_by}".rstrip())
