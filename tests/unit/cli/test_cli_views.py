"""What a run shows: figures as people read them, lines in a log, one row a stage on a terminal."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageProgress, TrainingStatus
from pretrain_api.status import PretrainJobStatus, StageStatus
from pretrain_operator.observed import Event
from pretrainctl.local.figures import (
    duration,
    progress_text,
    quantity,
    ratio,
    training_figures,
)
from pretrainctl.local.lines import LinesView
from pretrainctl.local.view import TerminalView
from rich.console import Console

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
TRAINING = TrainingStatus(
    step=1200,
    max_steps=2500,
    loss=4.1234,
    validation_loss=4.3,
    tokens_per_second=21_300,
    eta_seconds=65,
)
TRAIN_PROGRESS = StageProgress(
    stage="train", done=1200, total=2500, unit="steps", training=TRAINING
)


class Clock:
    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def status(*stages: StageStatus, blocked_by: str = "") -> PretrainJobStatus:
    return PretrainJobStatus(stages=list(stages), blocked_by=blocked_by)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0s"), (59, "59s"), (65, "1m05s"), (3599, "59m59s"), (7380, "2h03m"), (-5, "0s")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(950, "950"), (21_300, "21.3k"), (1_058_976, "1.1M"), (3.4e9, "3.4G")]
)
def test_quantities(value: float, text: str) -> None:
    assert quantity(value) == text


def test_training_tells_step_loss_speed_and_time_left() -> None:
    stage = StageStatus(name="train", state="Running", total=2)
    assert progress_text(stage, (TRAIN_PROGRESS,)) == (
        "1,200/2,500 steps, loss 4.123, validation 4.300, 21.3k tokens/s, 1m05s left"
    )
    assert ratio(stage, (TRAIN_PROGRESS,)) == 0.48


@pytest.mark.parametrize(("slowest", "told"), [(1.5, ""), (2.26, ", rank 3 2.3 times the median")])
def test_a_rank_that_holds_up_the_others_is_told_of(slowest: float, told: str) -> None:
    training = TrainingStatus(loss=4.0, slowest_rank=3, slowest_ratio=slowest)

    assert training_figures(training) == f"loss 4.000{told}"


def test_slices_add_up_to_the_share_that_is_done() -> None:
    stage = StageStatus(name="preprocess", state="Running", total=4, succeeded=1)
    progress = tuple(
        StageProgress(stage="preprocess", index=index, done=done, total=100, unit="bytes")
        for index, done in ((1, 50), (2, 30))
    )
    assert ratio(stage, progress) == pytest.approx(0.45)
    assert progress_text(stage, progress) == "1/4 slices"


def test_a_stage_that_has_told_nothing_is_starting() -> None:
    stage = StageStatus(name="train", state="Running")
    assert (ratio(stage, ()), progress_text(stage, ())) == (None, "starting")


def lines_of(stream: io.StringIO) -> list[str]:
    return [line.split(" ", 1)[1] for line in stream.getvalue().splitlines()]


def test_a_log_has_a_line_for_each_change_and_for_progress_now_and_then() -> None:
    stream, clock = io.StringIO(), Clock()
    view = LinesView(stream, clock)
    running = StageStatus(name="train", state="Running", total=2, start_time=NOW)
    for _ in range(60):
        view.update(status(running), (TRAIN_PROGRESS,))
        clock.advance(0.5)
    done = running.model_copy(update={"state": "Complete", "completion_time": clock.now})
    view.update(status(done), ())
    assert lines_of(stream) == [
        "train: running",
        "train: 1,200/2,500 steps, loss 4.123, validation 4.300, 21.3k tokens/s, 1m05s left",
        "train: done in 30s",
    ]


def test_a_log_tells_cached_stages_and_later_attempts() -> None:
    stream = io.StringIO()
    view = LinesView(stream, Clock())
    cached = StageStatus(name="preprocess", state="Complete", cached=True)
    view.update(status(cached, StageStatus(name="train", state="Running", attempt=2)), ())
    assert lines_of(stream)[:2] == ["preprocess: cached", "train: running, attempt 3"]


def test_events_are_shown_unless_the_stages_say_the_same() -> None:
    stream = io.StringIO()
    view = LinesView(stream, Clock())
    view.event(Event("Normal", "StageCompleted", "train is complete."))
    view.event(Event("Warning", "AttemptFailed", "rank 1 was lost"))
    assert lines_of(stream) == ["AttemptFailed: rank 1 was lost"]


def test_a_terminal_shows_every_stage_with_its_bar_and_what_the_job_waits_for() -> None:
    job = PretrainJob.model_validate(
        {
            "apiVersion": "pretrain.dev/v1alpha1",
            "kind": "PretrainJob",
            "metadata": {"name": "demo"},
            "spec": {
                "corpus": {"sources": [{"uri": "a.txt"}]},
                "model": {"architecture": "bert"},
            },
        }
    )
    console = Console(file=io.StringIO(), width=120, color_system=None, force_terminal=True)
    view = TerminalView(console, job, Clock())
    view.update(
        status(
            StageStatus(name="tokenizer", state="Complete", cached=True),
            StageStatus(name="train", state="Running", start_time=NOW - timedelta(seconds=61)),
            StageStatus(name="evaluate", state="Skipped"),
            StageStatus(name="export"),
            blocked_by="rank 1 is not running yet.",
        ),
        (TRAIN_PROGRESS,),
    )
    with console.capture() as captured:
        console.print(view)
    lines = [line.strip() for line in captured.get().splitlines()]
    assert lines[0].startswith("demo")
    assert lines[1].split() == ["✓", "tokenizer", "cached"]
    assert "1m01s: 1,200/2,500 steps, loss 4.123" in lines[2]
    assert lines[-1] == "rank 1 is not running yet."
