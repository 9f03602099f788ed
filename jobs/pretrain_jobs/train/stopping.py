"""The wish to stop: SIGTERM sets a flag that the loop looks at; the step in progress finishes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Whether this rank was asked to stop. Ranks agree on the step by reducing the flag."""

    def __init__(self) -> None:
        self.requested = False

    def set(self, _number: int, _frame: FrameType | None) -> None:
        """Take note, as a signal handler."""
        self.requested = True


@contextmanager
def stop_on_sigterm() -> Iterator[StopRequest]:
    """Until the block ends SIGTERM only sets the flag, and SIGINT, the terminal's, is ignored."""
    stop = StopRequest()
    previous = [
        (number, signal.signal(number, handler))
        for number, handler in ((signal.SIGTERM, stop.set), (signal.SIGINT, signal.SIG_IGN))
    ]
    try:
        yield stop
    finally:
        for number, handler in previous:
            signal.signal(number, handler)
