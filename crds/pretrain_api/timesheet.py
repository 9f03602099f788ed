"""Where the time of a training went, as its processes tell it and later ones take it up.

Only what a process has spent is booked here. What no process holds (a wait for pods, work that was
thrown away unseen) follows from the wall clock, and the plan tells it apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, TypeVar

from pydantic import AwareDatetime, Field

from pretrain_api.base import Message

USEFUL: frozenset[str] = frozenset({"step", "evaluation"})
"""Categories that training exists for; the rest is badput."""

Name = TypeVar("Name", bound=str)
Spent = Annotated[
    dict[Annotated[str, Field(max_length=32)], Annotated[float, Field(ge=0)]],
    Field(max_length=16),
]
"""Seconds by category."""


class TimeSheet(Message):
    """Seconds of the processes of rank 0 that led to where training stands, up to `at`.

    `began` is when the first of them started. Categories are those of
    `pretrain_jobs.train.goodput`.
    """

    began: AwareDatetime
    at: AwareDatetime
    seconds: Spent

    @property
    def booked(self) -> float:
        """Seconds in all categories together."""
        return sum(self.seconds.values())

    @property
    def wall_seconds(self) -> float:
        """Seconds from `began` to `at`; at least what was booked, however clocks disagree."""
        return max(self.booked, (self.at - self.began).total_seconds())

    @property
    def ratio(self) -> float:
        """The useful share of the time since `began`, from 0 to 1."""
        return useful(self.seconds) / self.wall_seconds if self.wall_seconds else 0.0


class EarlierAttempts(Message):
    """What is known of the attempts before one: their time, and the last step that was made.

    They may have gone further than the checkpoint that is resumed from: what is done again up to
    `step` is no progress.
    """

    time: TimeSheet
    step: int = 0


def useful(seconds: Mapping[Name, float]) -> float:
    """Seconds that training exists for."""
    return sum(spent for category, spent in seconds.items() if category in USEFUL)
