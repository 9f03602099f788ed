"""A run on a terminal: one line for each stage, redrawn in place, events scrolling above."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageProgress
from pretrain_api.status import Phase, PretrainJobStatus, StageStatus
from pretrain_operator.observed import Event
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from pretrainctl.local.figures import duration, progress_text, ratio
from pretrainctl.local.lines import TOLD_BY_STAGES, LinesView, stage_text
from pretrainctl.local.runner import View

BAR_WIDTH = 16
MARKS = {"Complete": ("✓", "green"), "Failed": ("✗", "red"), "Skipped": ("–", "dim")}
EVENT_STYLES = {"Normal": "dim", "Warning": "yellow"}


class TerminalView:
    """Keeps the last status and draws it whenever rich asks for it."""

    def __init__(self, console: Console, job: PretrainJob, clock: Callable[[], datetime]) -> None:
        self._console = console
        self._name = job.metadata.name
        self._clock = clock
        self._status = job.status
        self._progress: tuple[StageProgress, ...] = ()
        self._spinner = Spinner("dots", style="cyan")

    def update(self, status: PretrainJobStatus, progress: tuple[StageProgress, ...]) -> None:
        """Draw this from now on."""
        self._status, self._progress = status, progress

    def event(self, event: Event) -> None:
        """Print an event above the stages, unless they say the same."""
        if event.reason not in TOLD_BY_STAGES:
            self._console.print(Text(f"{event.reason}: {event.message}", EVENT_STYLES[event.type]))

    def note(self, text: str) -> None:
        """Print a sentence above the stages."""
        self._console.print(Text(text, "bold"))

    def __rich__(self) -> RenderableType:
        """All stages, and what the job waits for."""
        table = Table.grid(padding=(0, 2))
        for stage in self._status.stages:
            table.add_row(*self._row(stage))
        title = Text.assemble((self._name, "bold"), "  ", (self._status.phase.value, "cyan"))
        ended = self._status.phase in (Phase.SUSPENDED, Phase.FAILED)  # told when the run ends
        tells = self._status.blocked_by and not ended
        waits = [Text(self._status.blocked_by, "yellow")] if tells else []
        return Group(title, table, *waits)

    def _row(self, stage: StageStatus) -> tuple[RenderableType, ...]:
        if stage.state == "Running":
            share = ratio(stage, self._progress)
            bar = ProgressBar(total=1.0, completed=share or 0.0, width=BAR_WIDTH)
            details = f"{self._elapsed(stage)}{progress_text(stage, self._progress)}"
            return self._spinner, stage.name, bar, Text(details)
        mark, style = MARKS.get(stage.state, ("·", "dim"))
        return Text(mark, style), Text(stage.name, style), "", Text(stage_text(stage), style)

    def _elapsed(self, stage: StageStatus) -> str:
        if stage.start_time is None:
            return ""
        return f"{duration((self._clock() - stage.start_time).total_seconds())}: "


@contextmanager
def open_view(console: Console, job: PretrainJob, clock: Callable[[], datetime]) -> Iterator[View]:
    """A live view if the console is a terminal, else lines."""
    if not console.is_terminal:
        yield LinesView(sys.stderr, clock)
        return
    view = TerminalView(console, job, clock)
    with Live(view, console=console, refresh_per_second=8):
        yield view
