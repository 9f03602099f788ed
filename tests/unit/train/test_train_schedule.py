"""The learning rate as a function of the step, and the number of steps."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.spec.training import ScheduleSpec, TrainingSpec
from pretrain_jobs.train.schedule import learning_rate, with_known_steps

types = st.sampled_from(["linear", "cosine", "constant"])


def rate(step: int, *, peak: float = 1.0, max_steps: int = 100, **schedule: object) -> float:
    return learning_rate(
        step, peak=peak, schedule=ScheduleSpec.model_validate(schedule), max_steps=max_steps
    )


def test_the_warm_up_rises_in_equal_steps() -> None:
    assert rate(1001, peak=3e-4, warmupSteps=2000, max_steps=10_000) == 3e-4 * 1001 / 2000


@given(types, st.integers(1, 99))
def test_the_peak_is_reached_at_the_end_of_the_warm_up(kind: str, warmup: int) -> None:
    assert rate(warmup, type=kind, warmupSteps=warmup) == 1.0


@given(st.sampled_from(["linear", "cosine"]), st.integers(0, 99), st.floats(0.0, 1.0))
def test_the_last_step_has_the_minimum(kind: str, warmup: int, minimum: float) -> None:
    last = rate(100, type=kind, warmupSteps=warmup, minimumRatio=minimum)

    assert last == pytest.approx(minimum, abs=1e-15)


@given(st.sampled_from(["linear", "cosine"]), st.integers(0, 98), st.floats(0.0, 0.9))
def test_after_the_warm_up_no_rate_is_used_twice(kind: str, warmup: int, minimum: float) -> None:
    rates = [
        rate(step, type=kind, warmupSteps=warmup, minimumRatio=minimum)
        for step in range(warmup + 1, 101)
    ]

    assert all(later < earlier for earlier, later in pairwise(rates))


def test_cosine_is_half_way_in_the_middle() -> None:
    assert rate(60, type="cosine", warmupSteps=20) == pytest.approx(0.5)
    assert rate(40, type="cosine", warmupSteps=20) == pytest.approx((1 + math.cos(math.pi / 4)) / 2)


def test_constant_stays_at_the_peak() -> None:
    assert {rate(step, type="constant", warmupSteps=5) for step in range(5, 101)} == {1.0}


@pytest.mark.parametrize(
    ("length", "steps"),
    [({"epochs": 2.0}, 25), ({"epochs": 0.001}, 1), ({"maxTokens": 1000}, 4), ({"maxSteps": 7}, 7)],
)
def test_the_number_of_steps_follows_from_the_data(length: dict[str, float], steps: int) -> None:
    training = TrainingSpec.model_validate({"globalBatchSize": 8} | length)

    known = with_known_steps(training, samples_per_epoch=100, sequence_length=32)

    assert known.max_steps == steps


def test_warm_up_and_evaluation_that_were_left_out_follow_from_the_steps() -> None:
    training = TrainingSpec.model_validate({"globalBatchSize": 1, "epochs": 10.0})

    known = with_known_steps(training, samples_per_epoch=100, sequence_length=32)

    assert (known.schedule.warmup_steps, known.evaluation.every_steps) == (60, 100)
