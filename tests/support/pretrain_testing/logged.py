"""What this process logs while a test watches, in place of pytest's own capturing of logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


class _Keeping(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@contextmanager
def logged(level: int = logging.WARNING) -> Iterator[list[logging.LogRecord]]:
    """The records of this level and above that reach the root logger, as they come."""
    root, handler = logging.getLogger(), _Keeping()
    before = root.level
    root.addHandler(handler)
    root.setLevel(level)
    try:
        yield handler.records
    finally:
        root.setLevel(before)
        root.removeHandler(handler)
