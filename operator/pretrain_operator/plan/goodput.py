"""Where the time of a training goes, over all attempts: every second in one category.

Rank 0 tells what its processes have spent, each going on from the one before. Of the rest, from
when training could first run up to now, the plan knows what was queued and what was suspended.
What then remains was lost: to finding out that an attempt has ended, to ending it and to starting
the next, and to work of which nothing was stored or told.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pretrain_api.status import GoodputStatus
from pretrain_api.timesheet import EarlierAttempts, TimeSheet, useful

from pretrain_operator.plan.decision import Draft

QUEUED = "queued"
"""No attempt ran, though one should."""

SUSPENDED = "suspended"
"""No attempt should run; this is nobody's loss, and left out of the ratio."""

LOST = "lost"
_NOT_RANK_0S = frozenset({QUEUED, SUSPENDED, LOST})
_DIGITS = 3


def with_beginning(draft: Draft, since: datetime) -> Draft:
    """Begin to count, unless that was begun before."""
    goodput = draft.status.goodput or GoodputStatus()
    if goodput.start_time is not None:
        return draft
    begun = goodput.model_copy(update={"start_time": since, "time": since})
    return draft.with_status(goodput=begun)


def with_told_time(draft: Draft, sheet: TimeSheet | None, *, step: int | None) -> Draft:
    """Take over what rank 0 tells, and the step that it stands at."""
    goodput = draft.status.goodput
    if goodput is None or goodput.start_time is None or sheet is None:
        return draft
    goodput = goodput.model_copy(update={"step": max(goodput.step, step or 0)})
    settled = _settled(goodput, sheet.at, booked=sheet.seconds)
    return draft.with_status(goodput=settled)


def with_queued_time(draft: Draft, seconds: float, until: datetime) -> Draft:
    """Book a wait that is over."""
    goodput = draft.status.goodput
    if goodput is None:
        return draft
    return draft.with_status(goodput=_settled(goodput, until, queued=seconds))


def with_suspended_time(
    goodput: GoodputStatus | None, seconds: float, until: datetime
) -> GoodputStatus | None:
    """Book a suspension that is over."""
    if goodput is None:
        return None
    return _settled(goodput, until, suspended=seconds)


def with_end(draft: Draft, at: datetime) -> Draft:
    """Count up to the end of training."""
    goodput = draft.status.goodput
    return draft.with_status(goodput=_settled(goodput, at)) if goodput else draft


def earlier_attempts(goodput: GoodputStatus | None) -> EarlierAttempts | None:
    """What the next attempt is told of those before; None when they have told nothing."""
    if goodput is None or goodput.start_time is None or goodput.time is None:
        return None
    booked = _of_rank_0(goodput.seconds)
    if not booked:
        return None
    sheet = TimeSheet(began=goodput.start_time, at=goodput.time, seconds=booked)
    return EarlierAttempts(time=sheet, step=goodput.step)


def _settled(
    goodput: GoodputStatus,
    until: datetime,
    *,
    booked: Mapping[str, float] | None = None,
    queued: float = 0.0,
    suspended: float = 0.0,
) -> GoodputStatus:
    """Every second up to `until`; it never goes back, for clocks of nodes differ.

    What rank 0 has spent counts first, so that no second is booked twice where times overlap.
    """
    if goodput.start_time is None:
        return goodput
    until = max(until, goodput.time or goodput.start_time)
    booked = _of_rank_0(goodput.seconds if booked is None else booked)
    rest = max(0.0, (until - goodput.start_time).total_seconds() - sum(booked.values()))
    pauses = min(rest, goodput.seconds.get(SUSPENDED, 0.0) + max(0.0, suspended))
    waits = min(rest - pauses, goodput.seconds.get(QUEUED, 0.0) + max(0.0, queued))
    told = {**booked, SUSPENDED: pauses, QUEUED: waits, LOST: rest - pauses - waits}
    seconds = {name: round(spent, _DIGITS) for name, spent in told.items()}
    return goodput.model_copy(
        update={
            "seconds": {name: spent for name, spent in seconds.items() if spent},
            "ratio": _ratio(seconds),
            "time": until,
        }
    )


def _ratio(seconds: Mapping[str, float]) -> float | None:
    """None before there was any time that should have been used."""
    total = sum(seconds.values()) - seconds[SUSPENDED]
    return round(useful(seconds) / total, _DIGITS + 1) if total > 0 else None


def _of_rank_0(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: spent for name, spent in seconds.items() if name not in _NOT_RANK_0S}
