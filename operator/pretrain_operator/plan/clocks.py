"""Time that a job has run and time that it has waited, from what its conditions remember.

Running=True is active time. The rest is time in the queue (for pods, places, retries), but for
suspension, which is counted apart.
"""

from __future__ import annotations

from datetime import datetime

from pretrain_api.status import GoodputStatus, PretrainJobStatus

from pretrain_operator.plan.conditions import find_condition
from pretrain_operator.plan.decision import Draft, Turn

QUEUED = "queued"
"""Category of goodput for the time in which no attempt ran, though one should."""


def with_clocks(turn: Turn, draft: Draft) -> Draft:
    """Book the time since Running last changed, when it changes again."""
    status = turn.job.status
    running = find_condition(status, "Running")
    if running is None or draft.live == (running.status == "True"):
        return draft
    if not draft.live:
        seconds = round((turn.now - running.last_transition_time).total_seconds())
        return draft.with_status(active_seconds=draft.status.active_seconds + seconds)
    since = max(running.last_transition_time, _resumed_at(status) or running.last_transition_time)
    return _with_queued(draft, (turn.now - since).total_seconds())


def live_since(turn: Turn) -> datetime:
    """Since when the attempt runs that runs now."""
    running = find_condition(turn.job.status, "Running")
    if running is None or running.status != "True":
        return turn.now
    return running.last_transition_time


def _resumed_at(status: PretrainJobStatus) -> datetime | None:
    suspended = find_condition(status, "Suspended")
    return suspended.last_transition_time if suspended else None


def _with_queued(draft: Draft, seconds: float) -> Draft:
    goodput = draft.status.goodput or GoodputStatus()
    total = goodput.seconds.get(QUEUED, 0.0) + round(seconds)
    if total == 0:
        return draft
    changed = {**goodput.seconds, QUEUED: total}
    return draft.with_status(goodput=goodput.model_copy(update={"seconds": changed}))
