"""What status tells, against what was done to the job: restarts by cause, and every second."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pretrain_testing.soak.bounds import Bounds
from pretrain_testing.soak.plan import Kill, Kind

USEFUL = ("step", "evaluation")
SUSPENDED = "suspended"
_RATIO = 0.001


@dataclass(frozen=True)
class Done:
    """A kill that was carried out: seconds since the soak began, and to the next new commit.

    `before` and `after` are `status.restarts`; `attempts` counts how many were begun for it.
    """

    kill: Kill
    at: float
    seconds: float
    before: Mapping[str, int]
    after: Mapping[str, int]
    attempts: int

    @property
    def restarts(self) -> dict[str, int]:
        """What status counted more, by cause."""
        return {
            cause: count - self.before.get(cause, 0)
            for cause, count in self.after.items()
            if count != self.before.get(cause, 0)
        }


def judge_kills(done: Sequence[Done], restarts: Mapping[str, int]) -> list[str]:
    """A sentence for each kill that cost something else than it should, and for the sum."""
    sentences = [sentence for one in done for sentence in _judge_kill(one)]
    expected = Counter(one.kill.cause.value for one in done if one.kill.cause)
    if expected != restarts:
        sentences.append(f"Status counts the restarts {dict(restarts)}, not {dict(expected)}.")
    return sentences


def by_kind(done: Sequence[Done]) -> dict[Kind, list[Done]]:
    """The kills of each kind, in the order in which the kinds came."""
    found: dict[Kind, list[Done]] = {}
    for one in done:
        found.setdefault(one.kill.kind, []).append(one)
    return found


def judge_goodput(goodput: Mapping[str, Any], *, read_at: datetime, bounds: Bounds) -> list[str]:
    """A sentence where the categories do not sum to the wall clock, or the ratio is not theirs."""
    seconds: Mapping[str, float] = goodput["seconds"]
    total, wall = sum(seconds.values()), wall_clock(goodput, read_at=read_at)
    sentences = []
    if abs(total - wall) > bounds.goodput_share * wall + bounds.goodput_seconds:
        sentences.append(f"The categories sum to {total:.1f} s where {wall:.1f} s have passed.")
    counted = total - seconds.get(SUSPENDED, 0.0)
    ratio = sum(seconds.get(name, 0.0) for name in USEFUL) / counted if counted else 0.0
    if abs(ratio - (goodput.get("ratio") or 0.0)) > _RATIO:
        sentences.append(f"The goodput ratio is {goodput.get('ratio')}, not {ratio:.4f}.")
    negative = [name for name, spent in seconds.items() if spent < 0]
    if negative:
        sentences.append(f"Less than no time was spent on {', '.join(negative)}.")
    return sentences


def wall_clock(goodput: Mapping[str, Any], *, read_at: datetime) -> float:
    """Seconds from when training could first run to when the status was read, by this clock."""
    return (read_at - datetime.fromisoformat(goodput["startTime"])).total_seconds()


def _judge_kill(one: Done) -> Iterator[str]:
    cause = one.kill.cause
    expected = {cause.value: 1} if cause else {}
    if one.restarts != expected:
        told = f"counted {one.restarts or 'no restart'}, not {expected or 'none'}"
        yield f"{one.kill.kind} was killed after {one.at:.0f} s: status {told}."
    if one.attempts != len(expected):
        yield (
            f"{one.kill.kind} was killed after {one.at:.0f} s: {one.attempts} attempts were begun, "
            f"not {len(expected)}."
        )
