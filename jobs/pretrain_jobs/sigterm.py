"""SIGTERM as an exception in a stage's main thread, and as a plain end in its forked children."""

from __future__ import annotations

import functools
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from pretrain_jobs.errors import PreemptedError

_forking = threading.local()


@contextmanager
def raised_on_sigterm() -> Iterator[None]:
    """Raise PreemptedError in the block when SIGTERM comes, so that temporary files go.

    The block may set a handler of its own. Outside the main thread, which alone gets signals,
    nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _end_forked_children_by_default()
    previous = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _raise(_number: int, _frame: FrameType | None) -> None:
    raise PreemptedError("stopped by SIGTERM")


@functools.cache
def _end_forked_children_by_default() -> None:
    """Give forked children the default action in place of our handler.

    Python forgets signals that reach a child between the fork and its first instruction. So
    SIGTERM is held back until the child has the default action; else a pool that terminates its
    workers early could wait for them for ever.
    """
    os.register_at_fork(
        before=_hold_back, after_in_parent=_let_through, after_in_child=_default_and_let_through
    )


def _hold_back() -> None:
    _forking.mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})


def _let_through() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _forking.mask)


def _default_and_let_through() -> None:
    if signal.getsignal(signal.SIGTERM) is _raise:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    _let_through()
