"""Where the time of a process goes: every second belongs to one category, and they add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, get_args

Category = Literal["init", "restore", "data_wait", "step", "evaluation", "checkpoint_stall", "idle"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

USEFUL: frozenset[Category] = frozenset({"step", "evaluation"})
"""Categories that training exists for; the rest is badput."""


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

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start at the clock's present reading, in seconds."""
        self._clock = clock
        self.observer: Callable[[Category], None] = _nobody
        self._books = _Books("init", clock(), dict.fromkeys(CATEGORIES, 0.0))

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
        """Seconds by category up to now; they sum to the time since the start."""
        now = self._clock()
        return self._books.seconds(now)

    @property
    def ratio(self) -> float:
        """The useful share of the time up to now, from 0 to 1."""
        seconds = self.seconds
        total = sum(seconds.values())
        return sum(seconds[name] for name in USEFUL) / total if total else 0.0


def _nobody(_category: Category) -> None:
    """Take no note."""
