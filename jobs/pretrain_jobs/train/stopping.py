"""The wish to stop: in training SIGTERM sets a flag, and the step in progress finishes.

Where there is nothing to save it ends the rank at once, whatever it waits for: peers to meet, in
code that lets no handler of Python's run, or for a download.
"""

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
def ended_by_sigterm() -> Iterator[None]:
    """In the block SIGTERM ends the process by itself; the launcher says what that means."""
    previous = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


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
