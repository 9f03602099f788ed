"""What a run waits for: the end of a pod, a signal to stop, or a moment in time."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType

from pretrainctl.local.pod import PodExit

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Wakeups:
    """A queue that threads and signal handlers may put into, as `SimpleQueue.put` is reentrant."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[PodExit | None] = SimpleQueue()
        self.stops = 0
        """How often the command was asked to stop."""

    def pod_ended(self, ended: PodExit) -> None:
        """Tell of a pod's end."""
        self._queue.put(ended)

    def stop(self) -> None:
        """Ask the run to stop."""
        self.stops += 1
        self._queue.put(None)

    def wait(self, seconds: float | None) -> list[PodExit]:
        """Sleep until something happens or the time is over; the pods that ended meanwhile."""
        ended = []
        try:
            entry = self._queue.get(timeout=seconds)
            while True:
                ended += [] if entry is None else [entry]
                entry = self._queue.get_nowait()
        except Empty:
            return ended

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Turn SIGINT, SIGTERM and SIGHUP into stops for as long as the context lasts."""

        def handle(_number: int, _frame: FrameType | None) -> None:
            self.stop()

        before = {number: signal.signal(number, handle) for number in STOP_SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
