"""Where the time of a process goes: every second belongs to one category, and they add up.

What earlier attempts have spent is carried along, so that a time sheet tells of the whole training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, get_args

from pretrain_api.timesheet import EarlierAttempts, TimeSheet, useful

Category = Literal[
    "init",
    "restore",
    "data_wait",
    "step",
    "recompute",
    "evaluation",
    "checkpoint_stall",
    "idle",
]
"""`recompute` are steps that an attempt which was lost had made already."""

CATEGORIES: tuple[Category, ...] = get_args(Category)

STEPS: frozenset[Category] = frozenset({"step", "recompute"})
"""Categories of an optimizer step that is under way."""


@dataclass(frozen=True)
class _Books:
    """What was booked up to `since`, and the category that time goes to from then on."""

    category: Category
    since: float
    booked: dict[Category, float]

    def seconds(self, now: float) -> dict[Category, float]:
        """A reader's `now` may be a moment older than the books."""
        open_seconds = max(0.0, now - self.since)
        return {**self.booked, self.category: self.booked[self.category] + open_seconds}


class Goodput:
    """A stopwatch that is always in exactly one category, `init` at first.

    One thread moves it; any thread may read it. `observer` hears of each category that is entered.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        *,
        since: float | None = None,
        wall: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """Start at a reading of the clock, in seconds, by default the present one.

        `wall` is the time of day, by which time sheets of different processes are joined.
        """
        now = clock()
        start = now if since is None else min(since, now)
        self._clock = clock
        self._wall = wall
        self._began = wall() - timedelta(seconds=now - start)
        self._earlier: Mapping[str, float] = {}
        self.observer: Callable[[Category], None] = _nobody
        self._books = _Books("init", start, dict.fromkeys(CATEGORIES, 0.0))

    def enter(self, category: Category) -> Category:
        """Book the time so far, go on in another category, and return the one that was left."""
        now, left = self._clock(), self._books
        self._books = _Books(category, now, left.seconds(now))
        self.observer(category)
        return left.category

    @contextmanager
    def during(self, category: Category) -> Iterator[None]:
        """Be in a category for a block, then again in the one before."""
        before = self.enter(category)
        try:
            yield
        finally:
            self.enter(before)

    @property
    def seconds(self) -> dict[Category, float]:
        """Seconds of this process by category up to now; they sum to the time since the start."""
        now = self._clock()
        return self._books.seconds(now)

    @property
    def ratio(self) -> float:
        """The useful share of this process's time up to now, from 0 to 1."""
        seconds = self.seconds
        total = sum(seconds.values())
        return useful(seconds) / total if total else 0.0

    def go_on_from(self, stored: TimeSheet | None, told: EarlierAttempts | None) -> None:
        """Take up the time of earlier attempts.

        `stored` lies in the checkpoint, `told` is what the plan last heard. The one that holds
        more goes on from the other. What neither holds was lost, and stays unbooked.
        """
        sheets = [sheet for sheet in (stored, told.time if told else None) if sheet is not None]
        if sheets:
            self._earlier = max(sheets, key=lambda sheet: sheet.booked).seconds
            self._began = min(self._began, *(sheet.began for sheet in sheets))

    @property
    def sheet(self) -> TimeSheet:
        """Seconds by category up to now, of this process and of the earlier ones."""
        spent = Counter[str]()
        for seconds in (self._earlier, self.seconds):
            spent.update(seconds)
        return TimeSheet(began=self._began, at=self._wall(), seconds=dict(spent))


def extended(sheet: TimeSheet, now: datetime) -> TimeSheet:
    """The same up to now, for whoever sees rank 0's process end; the rest was idle."""
    idle = max(0.0, (now - sheet.at).total_seconds())
    seconds = {**sheet.seconds, "idle": sheet.seconds.get("idle", 0.0) + idle}
    return sheet.model_copy(update={"at": max(now, sheet.at), "seconds": seconds})


def _nobody(_category: Category) -> None:
    """Take no note."""
