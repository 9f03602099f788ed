"""Rank 0's figures for people: the log in JSON lines, TensorBoard, and the progress file.

The log's lines come from the training state, so after a resume it is cut back to the step that
training resumed from and each step appears once.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pretrain_api.reports import CheckpointStatus, TrainingStatus
from pretrain_api.timesheet import TimeSheet

from pretrain_jobs.checkpoint.layout import LOGS
from pretrain_jobs.checkpoint.orders import Companion
from pretrain_jobs.errors import StageError
from pretrain_jobs.process import ProgressReporter
from pretrain_jobs.storage import ObjectStore
from pretrain_jobs.storage.artifact import upload_file
from pretrain_jobs.train.state import LogLine, Progress

LOG_FILE = "log.jsonl"
LOG_DIR_ENV = "PRETRAIN_LOG_DIR"
"""Environment variable with a directory in which the log can be read while it grows."""

_log = logging.getLogger(__name__)


class Telemetry:
    """Writes the log and what follows from it; made on rank 0 only."""

    def __init__(
        self,
        directory: Path,
        *,
        progress: Progress,
        store: ObjectStore,
        reporter: ProgressReporter,
        tensorboard: bool,
    ) -> None:
        """Log into a local directory from where training stands; publish beside the checkpoints."""
        self._directory = directory
        self._store = store
        self._reporter = reporter
        self._published: dict[Path, int] = {}
        directory.mkdir(parents=True, exist_ok=True)
        (directory / LOG_FILE).write_text("".join(map(_encode, progress.log)))
        self._board = _board(directory, progress.step) if tensorboard else None

    def line(self, line: LogLine) -> None:
        """Append a line, and its numbers to TensorBoard."""
        with (self._directory / LOG_FILE).open("a") as stream:
            stream.write(_encode(line))
        if self._board is not None:
            for name, value in _scalars(line):
                self._board.add_scalar(name, value, line["step"])

    def show(
        self,
        status: TrainingStatus,
        *,
        message: str = "",
        checkpoint: CheckpointStatus | None = None,
        time_sheet: TimeSheet | None = None,
        force: bool = False,
    ) -> None:
        """Show where training stands in the progress file."""
        self._reporter.update(
            done=status.step,
            total=status.max_steps,
            unit="steps",
            message=message,
            training=status,
            checkpoint=checkpoint,
            time_sheet=time_sheet,
            force=force,
        )

    def unpublished(self) -> list[Companion]:
        """What is to be copied next to the checkpoints with a save that begins now."""
        if self._board is not None:
            self._board.flush()
        return [
            Companion(path, LOGS + path.relative_to(self._directory).as_posix(), size)
            for path, size in self._sizes()
            if self._published.get(path) != size
        ]

    def were_published(self, companions: Iterable[Companion]) -> None:
        """Take note of what was copied."""
        self._published |= {companion.path: companion.size for companion in companions}

    def publish(self) -> None:
        """Copy log and events next to the checkpoints; a failure is logged and made good later."""
        try:
            for companion in self.unpublished():
                upload_file(self._store, companion.path, key=companion.key)
                self._published[companion.path] = companion.size
        except StageError as error:
            _log.warning("the log was not copied to %s: %s", self._store.uri, error)

    def _sizes(self) -> list[tuple[Path, int]]:
        paths = sorted(path for path in self._directory.rglob("*") if path.is_file())
        return [(path, path.stat().st_size) for path in paths]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._reporter.flush()
        if self._board is not None:
            self._board.close()


def _board(directory: Path, step: int) -> Any:
    """A TensorBoard writer that replaces what was shown beyond `step`; its import takes a second.

    Each attempt has an event file of its own, and the viewer joins them.
    """
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(directory / "tensorboard"), purge_step=step + 1)


def _encode(line: LogLine) -> str:
    return json.dumps(line, separators=(",", ":")) + "\n"


def _scalars(line: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    """The numbers of a line by name, those of nested objects as `outer/inner`."""
    found: list[tuple[str, float]] = []
    for name, value in line.items():
        if isinstance(value, Mapping):
            found += _scalars(value, f"{prefix}{name}/")
        elif isinstance(value, int | float) and not isinstance(value, bool) and name != "step":
            found.append((prefix + name, float(value)))
    return found
