"""Another number of workers: a new attempt of that size goes on from where the old one stood.

The old one's pods get their grace period, in which training saves a last checkpoint. The global
batch and the order of samples stay, and no budget is used.
"""

from __future__ import annotations

from dataclasses import replace

from pretrain_api.status import StageStatus

from pretrain_operator.observed import ObservedJob
from pretrain_operator.plan.decision import Draft, Turn


def with_resize(turn: Turn, draft: Draft, stage: StageStatus, job: ObservedJob) -> Draft:
    """Give up a training attempt of another size than the spec's; one that ends is left alone."""
    replicas = turn.job.spec.workers.replicas
    ends = job.condition is not None or bool(job.succeeded)
    if stage.name != "train" or draft.refused or ends or job.completions == replicas:
        return draft
    text = (
        f"Attempt {stage.attempt} of train has {job.completions} workers, the spec {replicas}: "
        "the next one goes on with these."
    )
    draft = draft.with_event("Normal", "Resized", text)
    draft = replace(draft, live=False, blocked_by=text)
    return draft.with_next_attempt(stage, message=text, retry_time=turn.now)
