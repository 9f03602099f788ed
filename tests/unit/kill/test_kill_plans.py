"""Seeded plans of kills: the same each time, and of moments that are sure to come."""

from __future__ import annotations

import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from pretrain_testing.kills import (
    COMMITTED,
    LOADING,
    SAVES_EACH,
    STARTING,
    SWEEPING,
    Attempt,
    Deck,
    Done,
    Kill,
    pairs,
    seeded_attempts,
    table,
)

KILLS = 5
seeds = st.integers(0, 2**32)


def attempts_of(seed: int, *, jobs: int = 1) -> list[list[Attempt]]:
    source = random.Random(seed)
    deck = Deck(source)
    return [
        seeded_attempts(source, deck, kills=KILLS, on_node=number % 2 == 1)
        for number in range(jobs)
    ]


@given(seed=seeds)
def test_a_seed_gives_the_same_kills_each_time(seed: int) -> None:
    assert attempts_of(seed) == attempts_of(seed)


@given(seed=seeds)
def test_only_the_last_kill_of_an_attempt_ends_it_and_saves_ascend(seed: int) -> None:
    (attempts,) = attempts_of(seed)

    assert sum(map(len, attempts)) == KILLS
    for attempt in attempts:
        assert not any(kill.ends_the_attempt for kill in attempt[:-1])
        saves = [kill.save for kill in attempt if kill.save]
        assert saves == sorted(set(saves))
        assert max(saves, default=0) <= SAVES_EACH * len(attempt)


@given(seed=seeds)
def test_a_save_lies_between_a_writers_death_and_one_in_a_step(seed: int) -> None:
    (attempts,) = attempts_of(seed)

    for attempt in attempts:
        for before, kill in pairwise(attempt):
            assert kill.moment != "training" or kill.save == before.save + 2


@given(seed=seeds)
def test_nothing_is_loaded_before_a_commit_or_swept_where_nothing_was_left(seed: int) -> None:
    (attempts,) = attempts_of(seed)

    for number, attempt in enumerate(attempts):
        first, before = attempt[0], [kill for one in attempts[:number] for kill in one]
        assert not any(kill.moment in STARTING for kill in attempt[1:])
        if first.moment in LOADING:
            assert any(kill.moment in COMMITTED or kill.save > 1 for kill in before)
        if first.moment in SWEEPING:
            assert any(kill.moment not in STARTING for kill in before)


def test_two_hundred_kills_come_by_every_moment_with_every_victim() -> None:
    jobs = attempts_of(1, jobs=40)

    dealt = {(kill.moment, kill.victim) for job in jobs for one in job for kill in one}
    assert dealt == set(pairs())


def test_the_table_counts_each_moment_and_victim_and_tells_what_failed() -> None:
    commit = Kill("after_commit", "one rank", save=1)
    done = [Done(commit, 4), Done(commit, 2), Done(Kill("training", "its writer", save=1))]

    assert table(done, [Done(commit, 0)]).splitlines() == [
        "moment        victim      count  resumed from step  result",
        "after_commit  one rank    3      0 2 4              1 in runs that failed",
        "training      its writer  1      went on            as if left alone",
    ]
