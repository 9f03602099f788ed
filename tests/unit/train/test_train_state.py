"""The state beside weights: stored and read back without a difference, figures built from it."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from pretrain_api.timesheet import TimeSheet
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.errors import CheckpointUnusableError
from pretrain_jobs.train.anomalies import AnomalyState
from pretrain_jobs.train.engine import Update
from pretrain_jobs.train.evaluation import summarise
from pretrain_jobs.train.figures import (
    evaluation_line,
    newest_line,
    training_line,
    training_status,
)
from pretrain_jobs.train.state import LossSum, Progress, TokenCounts
from pretrain_jobs.train.throughput import Work, peak_operations

PROGRESS = Progress(
    step=7,
    cursor=Cursor("0123", seed=42, samples_per_epoch=10, epoch=2, next_sample=3),
    samples=23,
    tokens=TokenCounts(100, 90, 14),
    anomalies=AnomalyState(skipped=1, non_finite=1, spikes=2, losses=(2.5, 0.1 + 0.2)),
    losses=LossSum(5.000000000000001, 2),
    evaluation_due=True,
    log=({"step": 5, "loss": 2.25},),
    time_sheet=TimeSheet(
        began=datetime(2026, 1, 1, 12, 0, 0, 125, UTC),
        at=datetime(2026, 1, 1, 12, 0, 7, 500, UTC),
        seconds={"init": 0.1 + 0.2, "step": 6.5},
    ),
)


def test_a_stored_state_is_read_back_to_the_last_bit() -> None:
    stored = json.loads(json.dumps(PROGRESS.to_json()))

    assert Progress.from_json(stored) == PROGRESS


def test_a_state_of_a_version_that_kept_no_time_is_read() -> None:
    stored = PROGRESS.to_json()
    del stored["time_sheet"]

    assert Progress.from_json(stored) == replace(PROGRESS, time_sheet=None)


def test_a_state_of_another_version_is_refused_with_what_to_do() -> None:
    stored = PROGRESS.to_json()
    del stored["anomalies"]

    with pytest.raises(CheckpointUnusableError, match=r"another version.*anomalies"):
        Progress.from_json(stored)


def test_an_evaluation_divides_sums_once() -> None:
    result = summarise(loss=2.0 + 90.0, correct=4.0, tokens=1.0 + 9.0, samples=3.0)

    assert result is not None
    assert (result.loss, result.accuracy, result.tokens) == (9.2, 0.4, 10)
    assert result.perplexity == pytest.approx(9897.129)


def test_without_a_prediction_there_is_no_result() -> None:
    assert summarise(loss=0.0, correct=0.0, tokens=0.0, samples=0.0) is None


def line(progress: Progress, norm: float = 1.5) -> dict[str, object]:
    work = Work(steps=4, tokens=TokenCounts(80, 70, 10), operations=1e9, seconds=2.0)
    return training_line(
        progress,
        learning_rate=3e-4,
        update=Update(norm, applied=True),
        samples_per_epoch=10,
        work=work,
        mfu=work.utilisation(peak=1e9, world_size=2),
    )


def test_a_line_of_the_log_has_all_figures() -> None:
    assert line(PROGRESS) == {
        "step": 7,
        "epoch": 2.3,
        "loss": 2.5000000000000004,
        "learningRate": 3e-4,
        "gradientNorm": 1.5,
        "skippedSteps": 1,
        "spikes": 2,
        "tokens": {"positions": 100, "real": 90, "loss": 14},
        "tokensPerSecond": {"positions": 40.0, "real": 35.0, "loss": 5.0},
        "stepSeconds": 0.5,
        "mfu": 0.25,
    }


def test_what_is_not_a_number_is_null_in_the_log() -> None:
    skipped = replace(PROGRESS, losses=LossSum())

    assert (line(skipped, float("inf"))["loss"], line(skipped, float("nan"))["gradientNorm"]) == (
        None,
        None,
    )


def test_the_status_shows_the_newest_figures_and_what_is_left() -> None:
    result = summarise(loss=20.0, correct=1.0, tokens=10.0, samples=3.0)
    assert result is not None
    progress = PROGRESS.with_line(line(PROGRESS)).with_line(evaluation_line(7, result))

    status = training_status(
        progress,
        max_steps=11,
        line=newest_line(progress, "learningRate"),
        evaluation=newest_line(progress, "validation"),
        slowest=(3, 1.75),
    )

    assert (status.step, status.max_steps, status.validation_loss) == (7, 11, 2.0)
    assert (status.tokens_per_second, status.eta_seconds) == (35.0, 2.0)
    assert (status.slowest_rank, status.slowest_ratio) == (3, 1.75)


def test_a_peak_is_known_only_for_named_devices_in_16_bits() -> None:
    assert peak_operations("NVIDIA H200", "bf16") == 989e12
    assert peak_operations("NVIDIA H100 PCIe", "bf16") == 756e12
    assert peak_operations("NVIDIA H200", "fp32") is None
    assert peak_operations("another", "bf16") is None
    assert Work().utilisation(peak=None, world_size=1) is None
