"""Time that a job has run and time that it has waited, from what its conditions remember.

Running=True is active time. The rest is time in the queue (for pods, places, retries), but for
suspension, which is counted apart.
"""

from __future__ import annotations

from datetime import datetime

from pretrain_api.status import PretrainJobStatus

from pretrain_operator.observed import ObservedJob
from pretrain_operator.plan.conditions import find_condition
from pretrain_operator.plan.decision import Draft, Turn
from pretrain_operator.plan.goodput import with_beginning, with_queued_time
from pretrain_operator.plan.stages import current_stage


def with_clocks(turn: Turn, draft: Draft) -> Draft:
    """Book the time since Running last changed, when it changes again."""
    running = find_condition(turn.job.status, "Running")
    if running is None or draft.live == (running.status == "True"):
        return draft
    if not draft.live:
        seconds = round((turn.now - running.last_transition_time).total_seconds())
        return draft.with_status(active_seconds=draft.status.active_seconds + seconds)
    stage = current_stage(draft.status.stages)
    job = turn.attempt_of(stage) if stage is not None else None
    if job is None or job.stage != "train":
        return draft
    return with_wait_for_training(turn, draft, job)


def with_begun_training(turn: Turn, draft: Draft, job: ObservedJob) -> Draft:
    """Count training's time from when it could first run, which is before its Job was created."""
    waits_since = _waits_since(turn.job.status)
    return with_beginning(draft, min(job.created_at, waits_since or job.created_at))


def with_wait_for_training(turn: Turn, draft: Draft, job: ObservedJob) -> Draft:
    """Book a wait that ended when rank 0's pod began to run, from where on its process counts."""
    since = _waits_since(turn.job.status)
    if since is None:
        return draft
    starts = [pod.started_at for pod in job.pods if pod.index == 0 and pod.started_at]
    until = min(starts, default=turn.now)
    return with_queued_time(draft, (until - since).total_seconds(), until)


def with_wait_broken_off(turn: Turn, draft: Draft) -> Draft:
    """Book a wait for training that ends now without a pod of rank 0's."""
    since = _waits_since(turn.job.status)
    if since is None:
        return draft
    return with_queued_time(draft, (turn.now - since).total_seconds(), turn.now)


def live_since(turn: Turn) -> datetime:
    """Since when the attempt runs that runs now."""
    running = find_condition(turn.job.status, "Running")
    if running is None or running.status != "True":
        return turn.now
    return running.last_transition_time


def _waits_since(status: PretrainJobStatus) -> datetime | None:
    """Since when no attempt runs, though one should; None while one runs."""
    running = find_condition(status, "Running")
    if running is None or running.status == "True":
        return None
    suspended = find_condition(status, "Suspended")
    since = running.last_transition_time
    return max(since, suspended.last_transition_time) if suspended else since
