"""A run as plain lines, for logs and pipes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TextIO

from pretrain_api.reports import StageProgress
from pretrain_api.status import PretrainJobStatus, StageStatus
from pretrain_operator.observed import Event

from pretrainctl.local.figures import duration, progress_text

PROGRESS_INTERVAL = timedelta(seconds=10)
"""How often a running stage's progress gets a line."""


TOLD_BY_STAGES = frozenset({"StageCompleted", "JobComplete", "JobFailed", "Suspended", "Resumed"})
"""Reasons of events that a view need not show, since it shows the stages and how the run ended."""


class LinesView:
    """Writes one line for each change of a stage, each event, and now and then the progress."""

    def __init__(self, stream: TextIO, clock: Callable[[], datetime]) -> None:
        self._stream = stream
        self._clock = clock
        self._shown: dict[str, tuple[str, int]] = {}
        self._progress = ""
        self._progress_at: datetime | None = None

    def update(self, status: PretrainJobStatus, progress: tuple[StageProgress, ...]) -> None:
        """A line for each stage that changed its state, or for progress if one is due."""
        for stage in status.stages:
            self._stage(stage)
        running = [stage for stage in status.stages if stage.state == "Running"]
        text = "; ".join(f"{stage.name}: {progress_text(stage, progress)}" for stage in running)
        now = self._clock()
        due = self._progress_at is None or now - self._progress_at >= PROGRESS_INTERVAL
        if text and text != self._progress and due:
            self._progress, self._progress_at = text, now
            self._write(text)

    def event(self, event: Event) -> None:
        """A line for an event, unless the stages' own lines say it."""
        if event.reason not in TOLD_BY_STAGES:
            self._write(f"{event.reason}: {event.message}")

    def note(self, text: str) -> None:
        """A line."""
        self._write(text)

    def _stage(self, stage: StageStatus) -> None:
        now = (stage.state, stage.attempt)
        before = self._shown.get(stage.name, ("Pending", stage.attempt))
        self._shown[stage.name] = now
        if now != before and stage.state not in ("Pending", "Skipped"):
            self._progress_at = self._clock()
            self._write(f"{stage.name}: {stage_text(stage)}")

    def _write(self, text: str) -> None:
        print(f"{self._clock().astimezone():%H:%M:%S} {text}", file=self._stream, flush=True)


def stage_text(stage: StageStatus) -> str:
    """A stage's state in words."""
    if stage.state == "Complete" and stage.cached:
        return "cached"
    if stage.state == "Complete" and stage.start_time and stage.completion_time:
        return f"done in {duration((stage.completion_time - stage.start_time).total_seconds())}"
    if stage.state == "Running" and stage.attempt:
        return f"running, attempt {stage.attempt + 1}"
    words = {"Pending": "waiting", "Running": "running", "Complete": "done"}
    return words.get(stage.state, stage.state.lower())
