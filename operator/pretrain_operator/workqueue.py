"""Which jobs are to be reconciled next: each at most once in the queue and once at work.

The rules of client-go's work queues: a key that is added while it is at work comes again
afterwards; failures wait longer each time. Jobs that have run before go first, so that a flood of
new ones keeps no running job waiting; every few turns a new one goes nevertheless.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from pretrain_operator.observe import JobKey

FIRST_RETRY_SECONDS = 1.0
LAST_RETRY_SECONDS = 60.0
TURNS_OF_OLD = 4
"""So many known jobs may go before a new one that waits."""


class WorkQueue:
    """A queue of keys for one event loop; `is_new` tells which ones may wait a little."""

    def __init__(self, *, is_new: Callable[[JobKey], bool]) -> None:
        self._is_new = is_new
        self._old: deque[JobKey] = deque()
        self._new: deque[JobKey] = deque()
        self._waiting: set[JobKey] = set()
        self._at_work: set[JobKey] = set()
        self._again: set[JobKey] = set()
        self._timers: dict[JobKey, asyncio.TimerHandle] = {}
        self._failures: dict[JobKey, int] = {}
        self._turns = 0
        self._ready = asyncio.Semaphore(0)
        self._closed = False

    def __len__(self) -> int:
        """How many keys wait for a turn."""
        return len(self._waiting)

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing is at work."""
        return not self._waiting and not self._at_work

    def add(self, key: JobKey) -> None:
        """Have a key taken as soon as possible."""
        if key in self._at_work:
            self._again.add(key)
        elif key not in self._waiting:
            self._waiting.add(key)
            (self._new if self._is_new(key) else self._old).append(key)
            self._ready.release()

    def add_after(self, key: JobKey, seconds: float) -> None:
        """Have a key taken after a while; an earlier time that is set already stands."""
        loop = asyncio.get_running_loop()
        due = loop.time() + max(seconds, 0.0)
        timer = self._timers.get(key)
        if timer is not None:
            if timer.when() <= due:
                return
            timer.cancel()
        self._timers[key] = loop.call_at(due, self._ring, key)

    def retry(self, key: JobKey, *, at_least: float = 0.0) -> float:
        """Have a key taken again that failed; the seconds until then double with each failure."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = max(min(FIRST_RETRY_SECONDS * 2.0**failures, LAST_RETRY_SECONDS), at_least)
        self.add_after(key, delay)
        return delay

    def succeeded(self, key: JobKey) -> None:
        """Forget a key's failures."""
        self._failures.pop(key, None)

    async def get(self) -> JobKey | None:
        """Take the next key, and its timer with it; `done` must follow. None at the end."""
        await self._ready.acquire()
        if self._closed:
            self._ready.release()
            return None
        key = self._next().popleft()
        self._waiting.remove(key)
        self._at_work.add(key)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()
        return key

    def done(self, key: JobKey) -> None:
        """Give a key back that was taken."""
        self._at_work.remove(key)
        if key in self._again:
            self._again.remove(key)
            self.add(key)

    def close(self) -> None:
        """Give out nothing any more."""
        self._closed = True
        self._ready.release()

    def _next(self) -> deque[JobKey]:
        if not self._new or (self._old and self._turns < TURNS_OF_OLD):
            self._turns += 1
            return self._old
        self._turns = 0
        return self._new

    def _ring(self, key: JobKey) -> None:
        del self._timers[key]
        self.add(key)
