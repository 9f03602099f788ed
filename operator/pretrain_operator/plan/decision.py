"""What a plan is made from and what it comes to: the inputs of one call, a draft, the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageName
from pretrain_api.status import PretrainJobStatus, StageState, StageStatus

from pretrain_operator.observed import (
    ChildRef,
    Event,
    Manifest,
    Observed,
    ObservedJob,
    Settings,
)

EVENT_LIMIT = 1024
"""Characters of an event's message that an API server takes."""

MESSAGE_LIMIT = 4096
"""Characters that a stage's message holds."""

DONE_STATES: frozenset[StageState] = frozenset({"Complete", "Skipped"})


def instant(moment: datetime) -> str:
    """A moment as sentences tell it, in UTC and whole seconds: `2026-01-01T12:00:00Z`."""
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


@dataclass(frozen=True)
class Plan:
    """What should happen next.

    An executor applies `apply` in its order, stores `status` where it differs from the job's,
    posts `events`, and only then carries out `delete`: so a cause of failure is in status before
    the children that show it go, and a crash in between is made good by planning again.
    `apply` holds only children that were not observed. `requeue_after` is the number of seconds
    until time alone changes the plan, None when only an observation can. `expired` says that
    ttlSecondsAfterFinished has passed and the PretrainJob itself should be deleted.
    """

    apply: tuple[Manifest, ...]
    delete: tuple[ChildRef, ...]
    status: PretrainJobStatus
    events: tuple[Event, ...]
    requeue_after: float | None
    expired: bool = False


@dataclass(frozen=True)
class Turn:
    """The inputs of one call of `plan`; `job` is as it was stored, its spec not resolved."""

    job: PretrainJob
    observed: Observed
    now: datetime
    settings: Settings

    def attempt_of(self, stage: StageStatus) -> ObservedJob | None:
        """The child Job of a stage's current attempt, if it exists."""
        wanted = (stage.name, stage.attempt)
        return next((j for j in self.observed.jobs if (j.stage, j.attempt) == wanted), None)

    def older_attempts_of(self, stage: StageStatus) -> tuple[ObservedJob, ...]:
        """The child Jobs of a stage's earlier attempts that still exist or still have pods."""
        jobs = self.observed.jobs
        return tuple(j for j in jobs if j.stage == stage.name and j.attempt < stage.attempt)


@dataclass(frozen=True)
class Verdict:
    """Why a job has failed for good; `accepted` is False when it was never run."""

    reason: str
    sentence: str
    accepted: bool = True


@dataclass(frozen=True)
class Draft:
    """A plan in the making: each step returns the next draft.

    `wake` has the moments at which time alone changes the plan. `live` says whether pods of the
    current attempt run, `blocked_by` what it waits for and `waits_for` that in one word, `refused`
    what is wrong with a spec that was edited after the job had been accepted, and `denied` what
    the API server has against it.
    """

    status: PretrainJobStatus
    apply: tuple[Manifest, ...] = ()
    events: tuple[Event, ...] = ()
    wake: tuple[datetime, ...] = ()
    live: bool = False
    blocked_by: str = ""
    waits_for: str = ""
    refused: str = ""
    denied: str = ""
    verdict: Verdict | None = None

    def with_status(self, **changes: Any) -> Draft:
        """The draft with some fields of its status replaced; itself where they are so already."""
        if _holds(self.status, changes):
            return self
        return replace(self, status=self.status.model_copy(update=changes))

    def with_stage(self, name: StageName, **changes: Any) -> Draft:
        """The draft with some fields of one stage's status replaced, or itself, likewise."""
        if _holds(self.stage(name), changes):
            return self
        stages = [
            stage.model_copy(update=changes) if stage.name == name else stage
            for stage in self.status.stages
        ]
        return self.with_status(stages=stages)

    def with_next_attempt(self, stage: StageStatus, **changes: Any) -> Draft:
        """The draft with a stage's current attempt given up for the next one."""
        began = {"state": "Pending", "attempt": stage.attempt + 1, "succeeded": 0}
        return self.with_stage(stage.name, **began, **changes)

    def has_left(self, stage: StageStatus) -> bool:
        """Whether a stage's attempt has been given up for the next one."""
        return self.stage(stage.name).attempt != stage.attempt

    def with_event(self, type_: Literal["Normal", "Warning"], reason: str, text: str) -> Draft:
        """The draft with one more event."""
        event = Event(type=type_, reason=reason, message=text[:EVENT_LIMIT])
        return replace(self, events=(*self.events, event))

    def failed(self, verdict: Verdict) -> Draft:
        """The draft of a job that cannot go on; its current stage has failed."""
        stage = next((s for s in self.status.stages if s.state not in DONE_STATES), None)
        draft = replace(self, verdict=verdict, live=False)
        if stage is None:
            return draft
        message = verdict.sentence[:MESSAGE_LIMIT]
        return draft.with_stage(stage.name, state="Failed", message=message, retry_time=None)

    def waking_at(self, *moments: datetime | None) -> Draft:
        """The draft that is planned again at some moments; None is no moment."""
        return replace(self, wake=(*self.wake, *(moment for moment in moments if moment)))

    def stage(self, name: StageName) -> StageStatus:
        """The status of one stage."""
        return next(stage for stage in self.status.stages if stage.name == name)


def _holds(model: PretrainJobStatus | StageStatus, values: Mapping[str, Any]) -> bool:
    return all(getattr(model, name) == value for name, value in values.items())
