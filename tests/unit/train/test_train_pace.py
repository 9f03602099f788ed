"""Which rank is slow by itself: told by what it does while it waits for nobody."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.reports import LATE_RATIO
from pretrain_jobs.train.pace import Pace, Stragglers, node_name, ratios
from pretrain_testing.logged import logged


class Clock:
    """A clock that is moved by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def told_by(waits: list[float], forwards: list[float], *, steps: int = 1) -> list[float]:
    """The sums over ranks that each waited and computed so long in every step of an interval."""
    shares = []
    for rank, spans in enumerate(zip(waits, forwards, strict=True)):
        clock = Clock()
        pace = Pace(rank, len(waits), clock)
        for _ in range(steps):
            with pace.waiting():
                clock.now += spans[0]
            clock.now += 100.0  # with the others
            with pace.computing():
                clock.now += spans[1]
            assert pace.share() == []
        pace.due = True
        shares.append(pace.share())
        assert sum(pace.share()) == 0
    return [sum(values) for values in zip(*shares, strict=True)]


def test_the_slow_rank_stands_out_by_its_own_time_however_long_all_are_together() -> None:
    shares = told_by([0.0, 1.0, 0.0, 0.0], [1.0, 1.0, 3.0, 1.0], steps=5)

    assert ratios(shares, gathers=False) == [1.0, 2.0, 3.0, 1.0]


def test_of_two_ranks_the_slower_is_measured_by_the_faster() -> None:
    assert ratios(told_by([0.0, 0.0], [1.0, 4.0]), gathers=False) == [1.0, 4.0]


def test_where_the_forward_pass_waits_for_others_only_the_wait_for_data_counts() -> None:
    shares = told_by([0.0, 3.0, 0.0], [4.0, 1.0, 4.0])

    assert ratios(shares, gathers=True) == [1.0, 4.0, 1.0]


def test_a_single_rank_tells_nothing() -> None:
    pace = Pace(0, 1, Clock(), due=True)

    assert pace.share() == []


@given(st.lists(st.floats(0, 1e6), min_size=4, max_size=40).filter(lambda x: len(x) % 2 == 0))
def test_half_of_the_ranks_are_never_above_the_median(shares: list[float]) -> None:
    found = ratios(shares, gathers=False)

    assert len(found) == len(shares) // 2
    assert all(ratio >= 0 for ratio in found)
    assert sum(ratio <= 1 for ratio in found) * 2 >= len(found)


def test_a_rank_that_is_late_three_times_on_end_is_told_of_once_with_its_node() -> None:
    stragglers = Stragglers(("node-a", "node-b"))
    late, well = (1.0, LATE_RATIO * 2), (1.0, LATE_RATIO)
    with logged() as records:
        told = [stragglers.judge(found) for found in (late, late, well, late, late, late, late)]

    assert told == [[], [], [], [], [], [1], []]
    (record,) = records
    assert "rank 1 on node-b is slow" in record.getMessage()
    assert "3.0 times" in record.getMessage()


def test_the_slowest_rank_is_known_once_an_interval_was_judged() -> None:
    stragglers = Stragglers(("a", "b", "c"))
    assert stragglers.slowest is None

    stragglers.judge((1.0, 0.5, 1.2))

    assert stragglers.slowest == (2, 1.2)


def test_a_rank_without_the_name_of_its_node_is_told_by_its_pod() -> None:
    assert node_name({"PRETRAIN_NODE": "node-a"}, "pod-0") == "node-a"
    assert node_name({}, "pod-0") == "pod-0"
