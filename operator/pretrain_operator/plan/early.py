"""A wait for the next attempt that is broken off: somebody says that its cause is mended.

Whoever edits the spec says so, or sets the annotation to a value that it did not have before, for
what is mended elsewhere: credentials, a bucket, a namespace's rules. No budget is given back.
"""

from __future__ import annotations

from pretrain_api.base import GROUP
from pretrain_api.status import StageStatus

from pretrain_operator.plan.decision import Draft, Turn

RETRY_ANNOTATION = f"{GROUP}/retry-now"

VALUE_LIMIT = 128
"""Characters of the annotation's value that count."""


def asked_value(turn: Turn) -> str:
    """The annotation's value, empty without one."""
    return turn.job.metadata.annotations.get(RETRY_ANNOTATION, "")[:VALUE_LIMIT]


def is_asked(turn: Turn) -> bool:
    """Whether the annotation asks for a try, and that was not acted on yet."""
    return asked_value(turn) not in ("", turn.job.status.handled_retry)


def with_early_start(turn: Turn, draft: Draft, stage: StageStatus) -> Draft:
    """End a stage's back-off where it was asked for, or the spec was edited since it began."""
    if stage.retry_time is None or stage.retry_time <= turn.now:
        return draft
    if is_asked(turn):
        why = f"the annotation {RETRY_ANNOTATION} was set"
    elif turn.job.status.observed_generation < turn.job.metadata.generation:
        why = "the spec was edited"
    else:
        return draft
    text = f"Attempt {stage.attempt} of {stage.name} waits no longer, as {why}."
    draft = draft.with_event("Normal", "WaitBrokenOff", text)
    return draft.with_stage(stage.name, retry_time=turn.now)
