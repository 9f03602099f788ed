"""Kills against restarts in status, and the categories of goodput against the clock."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pretrain_testing.soak.accounts import Done, by_kind, judge_goodput, judge_kills, wall_clock
from pretrain_testing.soak.bounds import BOUNDS
from pretrain_testing.soak.plan import Kill, Kind

BEGAN = datetime(2026, 11, 1, tzinfo=UTC)


def done(
    kind: Kind,
    *,
    before: Mapping[str, int] | None = None,
    after: Mapping[str, int] | None = None,
    attempts: int = 0,
) -> Done:
    kill = Kill(at=120, kind=kind, victim=0, outage_seconds=5)
    return Done(
        kill, at=121.0, seconds=9.0, before=before or {}, after=after or {}, attempts=attempts
    )


RANK = done("a rank", after={"Infrastructure": 1}, attempts=1)
POD = done(
    "a worker pod",
    before={"Infrastructure": 1},
    after={"Infrastructure": 1, "Preempted": 1},
    attempts=1,
)
COUNTED = {"Infrastructure": 1, "Preempted": 1}


def test_kills_that_cost_what_they_should_are_right() -> None:
    kubelet = done("a kubelet", before=COUNTED, after=COUNTED)

    assert judge_kills([RANK, POD, kubelet], COUNTED) == []
    assert by_kind([RANK, POD, RANK]) == {"a rank": [RANK, RANK], "a worker pod": [POD]}


def test_a_restart_that_nobody_caused_is_told() -> None:
    storage = done("the S3 server", after={"StorageUnavailable": 1}, attempts=1)

    assert judge_kills([storage], {"StorageUnavailable": 1}) == [
        "the S3 server was killed after 121 s: status counted {'StorageUnavailable': 1}, not none.",
        "the S3 server was killed after 121 s: 1 attempts were begun, not 0.",
        "Status counts the restarts {'StorageUnavailable': 1}, not {}.",
    ]


def test_a_kill_of_another_cause_is_told() -> None:
    pod = done("a worker pod", after={"Infrastructure": 1}, attempts=1)

    assert judge_kills([pod], {"Infrastructure": 1})[0] == (
        "a worker pod was killed after 121 s: status counted {'Infrastructure': 1}, "
        "not {'Preempted': 1}."
    )


def test_restarts_between_kills_are_told() -> None:
    assert judge_kills([RANK], {"Infrastructure": 2}) == [
        "Status counts the restarts {'Infrastructure': 2}, not {'Infrastructure': 1}."
    ]


def goodput(ratio: float = 0.65, **seconds: float) -> dict[str, Any]:
    spent = {"step": 600.0, "evaluation": 50.0, "restore": 250.0, "lost": 100.0, **seconds}
    return {"startTime": BEGAN.isoformat(), "seconds": spent, "ratio": ratio}


def judged(told: dict[str, Any], *, after: float = 1000.0) -> list[str]:
    return judge_goodput(told, read_at=BEGAN + timedelta(seconds=after), bounds=BOUNDS)


def test_categories_that_sum_to_the_clock_but_for_a_poll_are_right() -> None:
    assert judged(goodput()) == []
    assert judged(goodput(), after=1011.0) == []
    assert wall_clock(goodput(), read_at=BEGAN + timedelta(seconds=7)) == 7.0


def test_seconds_in_no_category_or_in_two_are_told() -> None:
    assert judged(goodput(), after=1013.0) == [
        "The categories sum to 1000.0 s where 1013.0 s have passed."
    ]
    assert judged(goodput(), after=980.0) == [
        "The categories sum to 1000.0 s where 980.0 s have passed."
    ]


def test_a_ratio_leaves_out_what_was_suspended_and_nothing_else() -> None:
    assert judged(goodput(suspended=500.0), after=1500.0) == []
    assert judged(goodput(ratio=0.9)) == ["The goodput ratio is 0.9, not 0.6500."]


def test_less_than_no_time_is_told() -> None:
    assert judged(goodput(lost=0.0, idle=-1.0, queued=101.0))[-1] == (
        "Less than no time was spent on idle."
    )
