"""Samples of training: made from what the loop shows, and in step with the clock."""

import math
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.reports import CheckpointStatus, TrainingStatus
from pretrain_api.spec.training import AnomaliesSpec
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.train.anomalies import AnomalyState, after_step
from pretrain_jobs.train.goodput import CATEGORIES, Category, Goodput
from pretrain_jobs.train.metrics import Shown, TrainingMetrics, skipped_by_reason
from pretrain_jobs.train.pace import Stragglers
from pretrain_jobs.train.resume import Resumption
from pretrain_jobs.train.state import Progress, TokenCounts

NOW = 1_800_000_000.0
CHECKPOINT = CheckpointStatus(
    step=8, uri="file:///c", sha256="0", time=datetime.fromtimestamp(NOW - 60, UTC)
)


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make_metrics(
    goodput: Goodput,
    *,
    resumed_from: int = 0,
    failures: int = 0,
    skipped: int = 0,
    device: str = "cpu",
    newest: tuple[float, ...] = (),
) -> TrainingMetrics:
    saver = SimpleNamespace(failures=failures)
    resumption = Resumption(
        progress=Progress(step=resumed_from, cursor=Cursor("d", 1, 10)),
        keeper=cast("Any", SimpleNamespace(saver=saver, skipped=skipped)),
        warnings=(),
        damaged=1,
    )
    return TrainingMetrics(
        resumption,
        goodput=goodput,
        stragglers=Stragglers(("a", "b"), newest=newest),
        device=torch.device(device),
        skips_spikes=False,
        clock=lambda: NOW,
    )


def make_shown(**status: Any) -> Shown:
    return Shown(
        status=TrainingStatus(step=10, max_steps=20, loss=2.0, **status),
        progress=Progress(
            step=10,
            cursor=Cursor("d", 1, 10),
            samples=80,
            tokens=TokenCounts(positions=200, real=150, loss=30),
        ),
        evaluation={"step": 5, "validation": {"accuracy": 0.5}},
        operations=1e9,
        checkpoint=CHECKPOINT,
    )


def values(metrics: TrainingMetrics) -> dict[str, Any]:
    """Values by name and labels; those that are not exported are left out."""
    return {
        " ".join([sample.family.name.removeprefix("pretrain_"), *sample.labels]): sample.value
        for sample in metrics.samples()
        if sample.value is not None
    }


@given(st.lists(st.tuples(st.sampled_from(CATEGORIES), st.integers(0, 1000)), max_size=20))
def test_times_by_category_sum_to_the_wall_clock(moves: list[tuple[Category, int]]) -> None:
    clock = Clock()
    goodput = Goodput(clock)
    metrics = make_metrics(goodput)
    metrics.show(make_shown())
    for category, seconds in moves:
        goodput.enter(category)
        clock.now += seconds

    found = values(metrics)

    spent = [found[f"job_time_seconds_total {category}"] for category in CATEGORIES]
    assert sum(spent) == clock.now - 100.0


def test_a_reader_never_sees_time_go_back() -> None:
    clock = Clock()
    goodput = Goodput(clock)
    clock.now += 5
    with goodput.during("step"):
        clock.now -= 1  # as for a reader that took the time just before the step began
        assert goodput.seconds["step"] == 0
        assert goodput.seconds["init"] == 5


def test_rank_0_tells_where_training_stands() -> None:
    metrics = make_metrics(Goodput(Clock()))
    metrics.show(make_shown(validation_loss=2.5, eta_seconds=30.0, mfu=0.4))

    found = values(metrics)

    assert found["global_step"] == 10
    assert found["target_steps"] == 20
    assert found["eta_seconds"] == 30.0
    assert found["loss train"] == 2.0
    assert found["loss validation"] == 2.5
    assert found["mfu_ratio"] == 0.4
    assert found["tokens_total position"] == 200
    assert found["tokens_total real"] == 150
    assert found["tokens_total loss"] == 30
    assert found["samples_total"] == 80
    assert found["packing_efficiency_ratio"] == 0.75
    assert found["model_flops_total"] == 1e9
    assert found["checkpoint_last_committed_step"] == 8
    assert found["checkpoint_last_committed_timestamp_seconds"] == NOW - 60
    assert found["checkpoint_corrupt_total"] == 1
    assert found["evaluation_metric validation  accuracy"] == 0.5
    assert "gradient_norm" not in found


def test_rank_0_tells_how_slow_each_rank_is() -> None:
    metrics = make_metrics(Goodput(Clock()), newest=(1.0, 2.5))
    metrics.show(make_shown())

    found = values(metrics)

    assert (found["straggler_ratio 0"], found["straggler_ratio 1"]) == (1.0, 2.5)


def test_other_ranks_tell_of_themselves_alone() -> None:
    metrics = make_metrics(Goodput(Clock()))
    metrics.stepped(0.5)

    names = {name.split()[0] for name in values(metrics)}

    assert names == {
        "step_duration_seconds",
        "last_step_timestamp_seconds",
        "data_wait_seconds_total",
    }


def test_a_rank_on_an_accelerator_tells_its_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = {torch.device("cuda:1"): 2**30}
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", peaks.__getitem__)

    found = values(make_metrics(Goodput(Clock()), device="cuda:1"))

    assert found["accelerator_memory_peak_bytes"] == 2**30


def test_recovery_ends_with_the_first_step() -> None:
    clock = Clock()
    goodput = Goodput(clock)
    metrics = make_metrics(goodput, resumed_from=4)
    metrics.show(make_shown())
    assert "recovery_seconds" not in values(metrics)

    with goodput.during("restore"):
        clock.now += 7
    clock.now += 2
    metrics.stepped(1.0)
    clock.now += 50
    metrics.stepped(1.0)

    found = values(metrics)
    assert found["recovery_seconds"] == 9
    assert found["restore_seconds storage"] == 7
    assert found["last_step_timestamp_seconds"] == NOW


def test_an_attempt_that_began_at_step_1_restored_nothing() -> None:
    metrics = make_metrics(Goodput(Clock()))
    metrics.show(make_shown())

    assert "restore_seconds storage" not in values(metrics)


def test_every_save_counts_as_a_stall_and_its_bytes_once() -> None:
    metrics = make_metrics(Goodput(Clock()), failures=1, skipped=3)
    metrics.show(make_shown())
    for stall in (3.0, 1.0, 2.0):
        metrics.stalled(stall)
    metrics.saved(30.0, size=1000)
    metrics.saved(20.0, size=500)

    found = values(metrics)

    assert found["checkpoint_stall_seconds"].count == 3
    assert found["checkpoint_stall_seconds"].total == 6.0
    assert found["checkpoint_write_seconds"].count == 2
    assert found["checkpoint_write_seconds"].total == 50.0
    assert found["checkpoint_bytes_total"] == 1500
    assert found["checkpoint_failures_total"] == 1
    assert found["checkpoint_skipped_total"] == 3


steps = st.lists(
    st.tuples(st.sampled_from([1.0, 1.1, 50.0, float("nan")]), st.booleans(), st.booleans()),
    max_size=40,
)


@given(steps, st.sampled_from(["count", "skip"]))
def test_every_skipped_step_has_one_reason(
    outcomes: list[tuple[float, bool, bool]], spike: Any
) -> None:
    spec = AnomaliesSpec(spike=spike, spike_window=4, spike_sigma=2.0)
    state = AnomalyState()
    for loss, gradient_is_finite, overflowed in outcomes:
        before = state.spikes
        probe = after_step(state, loss=loss, applied=True, rescaled=False, spec=spec)
        is_spike = spike == "skip" and probe.spikes > before
        applied = math.isfinite(loss) and gradient_is_finite and not overflowed and not is_spike
        state = after_step(
            state, loss=loss, applied=applied, rescaled=overflowed and not applied, spec=spec
        )

    reasons = skipped_by_reason(state, skips_spikes=spike == "skip")

    assert sum(reasons.values()) == state.skipped
    assert all(count >= 0 for count in reasons.values())
