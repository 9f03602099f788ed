"""What a soak kills: the same for a seed, every kind, and the operator in time to be watched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pretrain_testing.soak.plan import CAUSES, OPERATOR, OPERATOR_DIES_BEFORE, planned

SECONDS, EVERY = 1800.0, 120.0
seeds = st.integers(0, 2**32)


@given(seed=seeds)
def test_a_seed_gives_the_same_kills_each_time(seed: int) -> None:
    plans = [planned(seed=seed, seconds=SECONDS, every=EVERY) for _ in range(2)]

    assert plans[0] == plans[1]


def test_half_an_hour_has_a_kill_after_every_two_minutes_but_the_last() -> None:
    plan = planned(seed=1, seconds=SECONDS, every=EVERY)

    assert [kill.at for kill in plan] == [EVERY * number for number in range(1, 15)]


@given(seed=seeds)
def test_every_kind_is_killed_before_any_is_killed_a_third_time(seed: int) -> None:
    kinds = [kill.kind for kill in planned(seed=seed, seconds=SECONDS, every=EVERY)]

    assert set(kinds[:7]) == set(CAUSES)
    assert all(kinds[:7].count(kind) <= 2 for kind in CAUSES)


@given(seed=seeds)
def test_the_operator_dies_in_the_first_half_alone(seed: int) -> None:
    plan = planned(seed=seed, seconds=SECONDS, every=EVERY)

    moments = [kill.at for kill in plan if kill.kind == OPERATOR]
    assert moments
    assert max(moments) < OPERATOR_DIES_BEFORE * SECONDS
