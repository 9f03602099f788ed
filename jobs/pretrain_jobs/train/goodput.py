"""Where the time of a process goes: every second belongs to one category, and they add up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal, get_args

Category = Literal["init", "restore", "data_wait", "step", "evaluation", "checkpoint_stall", "idle"]
CATEGORIES: tuple[Category, ...] = get_args(Category)

USEFUL: frozenset[Category] = frozenset({"step", "evaluation"})
"""Categories that training exists for; the rest is badput."""


class Goodput:
    """A stopwatch that is always in exactly one category, `init` at first."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start at the clock's present reading, in seconds."""
        self._clock = clock
        self._category: Category = "init"
        self._since = clock()
        self._seconds: dict[Category, float] = dict.fromkeys(CATEGORIES, 0.0)

    def enter(self, category: Category) -> Category:
        """Book the time so far, go on in another category, and return the one that was left."""
        now = self._clock()
        left = self._category
        self._seconds[left] += now - self._since
        self._category, self._since = category, now
        return left

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
        self.enter(self._category)
        return dict(self._seconds)

    @property
    def ratio(self) -> float:
        """The useful share of the time up to now, from 0 to 1."""
        seconds = self.seconds
        total = sum(seconds.values())
        return sum(seconds[name] for name in USEFUL) / total if total else 0.0
