"""Progress of a running stage, written to a small file that the operator's side reads.

A courtesy: whatever goes wrong with the file, the stage goes on.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pretrain_api.reports import (
    PROGRESS_FILE_ENV,
    CheckpointStatus,
    StageName,
    StageProgress,
    TrainingStatus,
)
from pretrain_api.timesheet import TimeSheet

INTERVAL_SECONDS = 0.5
"""Shortest time between two writes that are not forced."""

_log = logging.getLogger(__name__)


def progress_path() -> Path | None:
    """Where progress goes, from the environment; None when nobody asked for it."""
    path = os.environ.get(PROGRESS_FILE_ENV)
    return Path(path) if path else None


@dataclass
class ProgressReporter:
    """Keeps a stage's `StageProgress` and replaces the file at most every half second.

    Safe to call from several threads.
    """

    stage: StageName
    index: int = 0
    attempt: int = 0
    path: Path | None = field(default_factory=progress_path)
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._written_at = -INTERVAL_SECONDS
        self._pending = False
        self._warned = False
        self._progress = StageProgress(stage=self.stage, index=self.index, attempt=self.attempt)

    def update(
        self,
        *,
        done: float | None = None,
        total: float | None = None,
        unit: str | None = None,
        message: str | None = None,
        training: TrainingStatus | None = None,
        checkpoint: CheckpointStatus | None = None,
        time_sheet: TimeSheet | None = None,
        force: bool = False,
    ) -> None:
        """Change what is given, keep the rest; write if forced or if the last write is old."""
        given: dict[str, Any] = {
            "done": done,
            "total": total,
            "unit": unit,
            "message": message,
            "training": training,
            "checkpoint": checkpoint,
            "time_sheet": time_sheet,
        }
        changes = {name: value for name, value in given.items() if value is not None}
        with self._lock:
            self._progress = self._progress.model_copy(update=changes)
            self._pending = True
            if force or self.clock() - self._written_at >= INTERVAL_SECONDS:
                self._write()

    def flush(self) -> None:
        """Write what a throttled update left unwritten."""
        with self._lock:
            if self._pending:
                self._write()

    def _write(self) -> None:
        self._written_at = self.clock()
        self._pending = False
        if self.path is None:
            return
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            temporary.write_text(self._progress.model_dump_json())
            temporary.replace(self.path)
        except OSError as error:
            self._warn(error)

    def _warn(self, error: OSError) -> None:
        if not self._warned:
            _log.warning("progress cannot be written to %s: %s", self.path, error.strerror)
        self._warned = True
