"""An attempt that cannot start is begun anew when its job's spec is edited meanwhile.

The edit may be what it waits for, such as another image, and children are never changed. What
runs is left alone, and so is an attempt that a queue holds back and would have to queue again.
"""

from __future__ import annotations

from pretrain_api.status import StageStatus

from pretrain_operator.observed import ObservedJob
from pretrain_operator.plan.decision import Draft, Turn
from pretrain_operator.plan.refused import lacks_pods
from pretrain_operator.plan.running import waits_to_begin


def with_edit(turn: Turn, draft: Draft, stage: StageStatus, job: ObservedJob) -> Draft:
    """Give up an attempt that waits and was made from an older spec; no budget is used."""
    if draft.refused or not is_older(turn, job) or not _is_stuck(job):
        return draft
    text = f"The spec was edited while attempt {stage.attempt} of {stage.name} could not start."
    draft = draft.with_event("Normal", "AttemptReplaced", text)
    return draft.with_next_attempt(stage, message=text, retry_time=turn.now)


def is_older(turn: Turn, job: ObservedJob) -> bool:
    """Whether an attempt was made from an older spec than the job has now."""
    return job.generation is not None and job.generation < turn.job.metadata.generation


def _is_stuck(job: ObservedJob) -> bool:
    """Whether a pod that is needed to begin tells what it waits for, or cannot be created."""
    if job.condition is not None or job.succeeded or not waits_to_begin(job):
        return False
    return lacks_pods(job) or any(pod.phase == "Pending" and pod.reason for pod in job.pods)
