"""Conditions with the fields of KEP-1623, and the phase, from a draft that is decided."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pretrain_api.job import PretrainJob
from pretrain_api.reports import Cause
from pretrain_api.status import (
    Condition,
    ConditionType,
    Phase,
    PretrainJobStatus,
    StageStatus,
)

from pretrain_operator.plan.decision import Draft
from pretrain_operator.plan.stages import PHASES, current_stage

MESSAGE_LIMIT = 32_768
_Told = tuple[Literal["True", "False", "Unknown"], str, str]


def find_condition(status: PretrainJobStatus, name: ConditionType) -> Condition | None:
    """A condition as it was last told; None before the first plan."""
    return next((c for c in status.conditions if c.type == name), None)


def is_accepted(job: PretrainJob) -> bool:
    """Whether this generation of the spec was found valid before."""
    accepted = find_condition(job.status, "Accepted")
    return (
        accepted is not None
        and accepted.status == "True"
        and accepted.observed_generation == job.metadata.generation
    )


def was_accepted(job: PretrainJob) -> bool:
    """Whether the job has run under an earlier spec; a first spec that is refused ends it."""
    return find_condition(job.status, "Accepted") is not None


def phase_of(draft: Draft, *, suspend: bool) -> Phase:
    """A stage's phase only while live pods run it; Pending in between."""
    stage = current_stage(draft.status.stages)
    if draft.verdict is not None:
        return Phase.FAILED
    if stage is None:
        return Phase.COMPLETE
    if suspend:
        return Phase.SUSPENDED
    return PHASES[stage.name] if draft.live else Phase.PENDING


def with_conditions(draft: Draft, *, generation: int, now: datetime) -> Draft:
    """The draft with all conditions told; `lastTransitionTime` moves only with a status."""
    told: dict[ConditionType, _Told] = {
        "Accepted": _accepted(draft),
        "DataReady": _data_ready(draft.status),
        "Running": _running(draft),
        "CheckpointHealthy": _checkpoint_healthy(draft.status),
        "Suspended": _suspended(draft.status),
        "Complete": _complete(draft),
        "Failed": _failed(draft),
    }
    conditions = [
        _condition(draft.status, name, values, generation=generation, now=now)
        for name, values in told.items()
    ]
    return draft.with_status(conditions=conditions)


def _condition(
    status: PretrainJobStatus, name: ConditionType, told: _Told, *, generation: int, now: datetime
) -> Condition:
    value, reason, text = told
    message = text[:MESSAGE_LIMIT]
    before = find_condition(status, name)
    unchanged = before is not None and before.status == value
    if before and unchanged and _tells(before) == (reason, message, generation):
        return before
    return Condition(
        type=name,
        status=value,
        reason=reason,
        message=message,
        observed_generation=generation,
        last_transition_time=before.last_transition_time if before and unchanged else now,
    )


def _tells(condition: Condition) -> tuple[str, str, int]:
    """What it tells beside its status."""
    return condition.reason, condition.message, condition.observed_generation


def _accepted(draft: Draft) -> _Told:
    if draft.verdict is not None and not draft.verdict.accepted:
        return "False", draft.verdict.reason, draft.verdict.sentence
    if draft.refused:
        return "False", "Invalid", draft.refused
    if draft.denied:
        return "False", Cause.ADMISSION_DENIED.value, draft.denied
    return "True", "Valid", ""


def _data_ready(status: PretrainJobStatus) -> _Told:
    stage = _stage(status, "preprocess")
    if stage is None or stage.state != "Complete":
        return "False", "NotPrepared", ""
    return "True", "Cached" if stage.cached else "Prepared", stage.uri


def _running(draft: Draft) -> _Told:
    stage = current_stage(draft.status.stages)
    if draft.live and stage is not None:
        return "True", PHASES[stage.name].value, ""
    return "False", draft.waits_for or draft.status.phase.value, draft.blocked_by


def _checkpoint_healthy(status: PretrainJobStatus) -> _Told:
    commit = status.checkpoint
    if status.no_progress_attempts:
        restarts = status.no_progress_attempts
        return "False", "NoNewCommit", f"{restarts} restarts brought no newer checkpoint."
    if commit is None:
        return "Unknown", "NoneYet", ""
    return "True", "Committed", f"Step {commit.step} is committed at {commit.uri}"


def _suspended(status: PretrainJobStatus) -> _Told:
    if status.phase is Phase.SUSPENDED:
        return "True", "Requested", "spec.suspend is true."
    return "False", "NotRequested", ""


def _complete(draft: Draft) -> _Told:
    if draft.status.phase is Phase.COMPLETE:
        return "True", "AllStagesComplete", draft.status.export_uri
    return "False", draft.status.phase.value, ""


def _failed(draft: Draft) -> _Told:
    if draft.verdict is not None:
        return "True", draft.verdict.reason, draft.verdict.sentence
    return "False", draft.status.phase.value, ""


def _stage(status: PretrainJobStatus, name: str) -> StageStatus | None:
    return next((stage for stage in status.stages if stage.name == name), None)
