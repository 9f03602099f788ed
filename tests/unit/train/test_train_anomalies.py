"""Steps that went wrong: pure verdicts on numbers that all ranks share."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.spec.training import AnomaliesSpec
from pretrain_jobs.errors import NonFiniteError
from pretrain_jobs.train.anomalies import AnomalyState, after_step, must_skip, require_finite

SPEC = AnomaliesSpec(spike_window=4, spike_sigma=3.0, max_consecutive_non_finite=3)
SKIPPING = SPEC.model_copy(update={"spike": "skip"})
CALM = (2.0, 2.1, 1.9, 2.0)


def run(
    steps: Sequence[tuple[float, bool]],
    spec: AnomaliesSpec = SPEC,
    *,
    losses: tuple[float, ...] = (),
) -> AnomalyState:
    state = AnomalyState(losses=losses)
    for loss, applied in steps:
        state = after_step(state, loss=loss, applied=applied, rescaled=False, spec=spec)
    return state


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_a_loss_that_is_not_finite_is_never_learnt_from(loss: float) -> None:
    assert must_skip(loss, AnomalyState(), SPEC)


def test_a_spike_is_counted_and_skipped_only_where_asked() -> None:
    state = AnomalyState(losses=CALM)

    assert not must_skip(9.0, state, SPEC)
    assert must_skip(9.0, state, SKIPPING)
    assert run([(9.0, True)], losses=CALM).spikes == 1
    assert not must_skip(2.1, state, SKIPPING)


def test_a_skipped_spike_is_not_taken_for_a_non_finite_step() -> None:
    state = run([(9.0, False)], SKIPPING, losses=CALM)

    assert (state.skipped, state.spikes, state.consecutive_non_finite) == (1, 1, 0)


def test_there_is_no_spike_before_the_window_is_full() -> None:
    assert run([(9.0, True)], losses=CALM[:3]).spikes == 0


def test_a_gradient_that_is_not_finite_counts_though_the_loss_is() -> None:
    state = run([(2.0, False), (2.0, False)])

    assert (state.skipped, state.non_finite, state.consecutive_non_finite) == (2, 2, 2)


def test_a_good_step_ends_the_run_of_bad_ones() -> None:
    state = run([(math.nan, False), (math.nan, False), (2.0, True), (math.nan, False)])

    require_finite(state, SPEC, step=4)
    assert (state.non_finite, state.consecutive_non_finite) == (3, 1)


def test_too_many_in_a_row_end_the_attempt_with_the_step_and_what_to_do() -> None:
    state = run([(math.nan, False)] * 3)

    with pytest.raises(NonFiniteError, match=r"3 steps in a row, the last of them step 7.*warm up"):
        require_finite(state, SPEC, step=7)


def test_the_first_one_ends_the_attempt_where_that_is_asked_for() -> None:
    spec = SPEC.model_copy(update={"non_finite": "fail"})

    with pytest.raises(NonFiniteError, match="1 steps in a row"):
        require_finite(run([(math.nan, False)], spec), spec, step=1)


def test_a_loss_scale_that_is_being_lowered_is_no_anomaly() -> None:
    state = after_step(AnomalyState(), loss=2.0, applied=False, rescaled=True, spec=SPEC)

    assert (state.skipped, state.consecutive_non_finite) == (1, 0)


@given(st.lists(st.tuples(st.floats(allow_nan=True, allow_infinity=True), st.booleans())))
def test_the_window_never_holds_what_is_not_finite(steps: list[tuple[float, bool]]) -> None:
    state = run(steps)

    assert len(state.losses) <= SPEC.spike_window
    assert all(math.isfinite(loss) for loss in state.losses)
