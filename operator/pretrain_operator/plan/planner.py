"""`plan`: from a job and its observed children to what should happen next.

It reads top to bottom: is there anything to decide, may the job run, how far is it, has it run
out of time, what does status say, which children go. Every step is pure and in a file of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pretrain_api.job import PretrainJob
from pretrain_api.problems import Problem
from pretrain_api.reports import Cause, StageName
from pretrain_api.status import TERMINAL_PHASES, Phase, StageStatus

from pretrain_operator.children.resolved import find_problems, storage_problems
from pretrain_operator.observed import Observed, Settings
from pretrain_operator.plan.attempts import Absent, Alive, Succeeded, judge
from pretrain_operator.plan.blocked import WAITS, with_blockage, with_missing_pods
from pretrain_operator.plan.cleanup import unwanted_children
from pretrain_operator.plan.clocks import with_clocks, with_wait_broken_off
from pretrain_operator.plan.conditions import (
    find_condition,
    is_accepted,
    phase_of,
    was_accepted,
    with_conditions,
)
from pretrain_operator.plan.deadlines import enforce_deadlines, expiry
from pretrain_operator.plan.decision import Draft, Plan, Turn, Verdict
from pretrain_operator.plan.early import asked_value, with_early_start
from pretrain_operator.plan.edited import with_edit
from pretrain_operator.plan.failures import Settling
from pretrain_operator.plan.goodput import with_end
from pretrain_operator.plan.lost import with_lost_children
from pretrain_operator.plan.ownership import is_foreign
from pretrain_operator.plan.pod_failures import Failure
from pretrain_operator.plan.progress import (
    eta,
    with_newest_checkpoint,
    with_progress,
    with_told_progress,
    with_workers,
)
from pretrain_operator.plan.quarantine import with_room
from pretrain_operator.plan.refused import (
    with_refused_child,
    with_refused_edit,
    with_refused_pods,
    with_standing_denial,
)
from pretrain_operator.plan.resizing import with_resize
from pretrain_operator.plan.retries import end_attempt
from pretrain_operator.plan.running import is_live, with_begun_stage, with_completed_stage
from pretrain_operator.plan.stages import current_stage, initial_stages
from pretrain_operator.plan.starting import start_or_wait
from pretrain_operator.plan.suspend import begin_suspension, end_suspension

__all__ = ["Plan", "plan"]

BLOCKED_LIMIT = 4096
"""Characters that `status.blockedBy` holds."""


def plan(job: PretrainJob, observed: Observed, now: datetime, settings: Settings) -> Plan:
    """Decide what should happen next; pure, and `now` is timezone-aware.

    Mistakes of the user's raise nothing: they are the status of a failed job.
    """
    turn = Turn(job=job, observed=observed, now=now, settings=settings)
    if job.metadata.deletion_timestamp is not None or is_foreign(job):
        return Plan(apply=(), delete=(), status=job.status, events=(), requeue_after=None)
    if job.status.phase in TERMINAL_PHASES:
        return _plan_of_finished(turn)
    return _conclude(turn, _decide(turn))


def _decide(turn: Turn) -> Draft:
    stages = turn.job.status.stages or initial_stages(turn.job.spec)
    draft = Draft(turn.job.status.model_copy(update={"stages": stages}))
    sentence = "; ".join(str(problem) for problem in _problems(turn))
    if sentence and not was_accepted(turn.job):
        return draft.failed(Verdict(Cause.USER_ERROR.value, sentence, accepted=False))
    draft = with_refused_edit(turn, draft, sentence)
    draft = with_newest_checkpoint(turn, end_suspension(turn, draft))
    draft = with_workers(turn, _advance(turn, draft))
    return enforce_deadlines(turn, with_clocks(turn, draft))


def _problems(turn: Turn) -> list[Problem]:
    """A spec that was accepted is not judged again, lest a newer operator end a running job."""
    if is_accepted(turn.job):
        return storage_problems(turn.job, turn.settings)
    return find_problems(turn.job, turn.settings)


def _advance(turn: Turn, draft: Draft) -> Draft:
    """Complete what has succeeded, then decide on the first stage that has not."""
    while (current := current_stage(draft.status.stages)) is not None:
        draft = with_begun_stage(turn, draft, current)
        draft = with_told_progress(turn, draft, current)
        stage = draft.stage(current.name)
        outcome = judge(turn, stage)
        if isinstance(outcome, Succeeded):
            draft = with_completed_stage(turn, draft, stage, outcome)
        elif turn.job.spec.suspend:
            return begin_suspension(turn, draft, stage)
        else:
            return _decide_stage(turn, draft, stage, outcome)
    return draft


def _decide_stage(
    turn: Turn,
    draft: Draft,
    stage: StageStatus,
    outcome: Absent | Alive | Settling | Failure,
) -> Draft:
    match outcome:
        case Absent() if draft.refused:
            return replace(draft, blocked_by=f"The edited spec cannot be run: {draft.refused}")
        case Absent():
            return _start(turn, draft, stage)
        case Alive():
            return _watch(turn, draft, stage, outcome)
        case Settling():
            return _settle(turn, draft, outcome)
        case Failure():
            failure = with_missing_pods(turn.job.status, outcome)
            policy = turn.job.spec.failure_policy
            return end_attempt(draft, stage, failure, policy=policy, now=turn.now)


def _start(turn: Turn, draft: Draft, stage: StageStatus) -> Draft:
    draft = with_early_start(turn, draft, stage)
    return (
        with_standing_denial(turn, draft)
        or with_refused_child(turn, draft, stage)
        or start_or_wait(turn, draft, draft.stage(stage.name))
    )


def _watch(turn: Turn, draft: Draft, stage: StageStatus, alive: Alive) -> Draft:
    denied = with_refused_pods(draft, stage, alive.job)
    if denied is not None:
        return denied
    live = is_live(alive.job)
    draft = with_progress(turn, draft, stage, alive.job, live=live).waking_at(alive.checked_at)
    draft = with_blockage(turn, replace(draft, live=live), alive.job)
    for mended in (with_room, with_resize, with_edit, with_lost_children):
        draft = mended(turn, draft, stage, alive.job)
        if draft.has_left(stage):
            break
    return draft


def _settle(turn: Turn, draft: Draft, settling: Settling) -> Draft:
    """What the attempt waited for may be why it fails, and its pending pods go first."""
    running = find_condition(turn.job.status, "Running")
    told = running.reason if running is not None and running.reason in WAITS else ""
    blocked_by = turn.job.status.blocked_by if told else settling.so_far.sentence
    return replace(draft, blocked_by=blocked_by, waits_for=told).waking_at(settling.until)


def _conclude(turn: Turn, draft: Draft) -> Plan:
    """One status, one list of children to delete, and when to plan again."""
    generation = turn.job.metadata.generation
    phase = phase_of(draft, suspend=turn.job.spec.suspend)
    over = phase in TERMINAL_PHASES
    if phase is Phase.FAILED and draft.stage("train").state == "Failed":
        draft = with_end(with_wait_broken_off(turn, draft), turn.now)
    draft = _with_end(draft, phase).with_status(
        phase=phase,
        stage=_stage_name(draft),
        observed_generation=generation,
        handled_retry=asked_value(turn),
        completion_time=_completion_time(turn, draft, phase) if over else None,
        blocked_by=_blocked_by(draft, phase)[:BLOCKED_LIMIT],
        export_uri=draft.stage("export").uri if phase is Phase.COMPLETE else "",
        restart_count=sum(draft.status.restarts.values()),
        eta=eta(draft.status.training) if phase is Phase.TRAINING else "",
    )
    draft = with_conditions(draft, generation=generation, now=turn.now)
    due = expiry(draft.status, turn.job.spec) if over else None
    return Plan(
        apply=() if over else draft.apply,
        delete=unwanted_children(turn.job, turn.observed, draft.status),
        status=draft.status,
        events=draft.events,
        requeue_after=_seconds_until([due] if over else draft.wake, turn.now),
    )


def _stage_name(draft: Draft) -> StageName | None:
    stage = current_stage(draft.status.stages)
    return stage.name if stage else None


def _completion_time(turn: Turn, draft: Draft, phase: Phase) -> datetime:
    """A job is complete when its last stage is, however late that is noticed."""
    told = draft.stage("export").completion_time if phase is Phase.COMPLETE else None
    return min(told or turn.now, turn.now)


def _with_end(draft: Draft, phase: Phase) -> Draft:
    if phase is Phase.COMPLETE:
        text = f"The model is exported to {draft.stage('export').uri}"
        return draft.with_event("Normal", "JobComplete", text)
    if draft.verdict is not None:
        text = f"{draft.verdict.reason}: {draft.verdict.sentence}"
        return draft.with_event("Warning", "JobFailed", text)
    return draft


def _blocked_by(draft: Draft, phase: Phase) -> str:
    if draft.verdict is not None:
        return draft.verdict.sentence
    return "The job is suspended." if phase is Phase.SUSPENDED else draft.blocked_by


def _plan_of_finished(turn: Turn) -> Plan:
    """A terminal status never changes; what is left is cleaning up, and the time to live."""
    status = turn.job.status
    due = expiry(status, turn.job.spec)
    return Plan(
        apply=(),
        delete=unwanted_children(turn.job, turn.observed, status),
        status=status,
        events=(),
        requeue_after=_seconds_until([due], turn.now),
        expired=due is not None and due <= turn.now,
    )


def _seconds_until(moments: Sequence[datetime | None], now: datetime) -> float | None:
    seconds = [(moment - now).total_seconds() for moment in moments if moment is not None]
    return max(0.0, min(seconds)) if seconds else None
