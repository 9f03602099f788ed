"""Every second belongs to one category."""

from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.train.goodput import CATEGORIES, Goodput


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


moves = st.lists(st.tuples(st.sampled_from(CATEGORIES), st.integers(0, 1000)))


@given(moves)
def test_the_categories_add_up_to_the_time_that_passed(steps: list[tuple[str, int]]) -> None:
    clock = Clock()
    goodput = Goodput(clock)

    for category, seconds in steps:
        goodput.enter(category)  # type: ignore[arg-type]
        clock.now += seconds

    assert sum(goodput.seconds.values()) == clock.now - 100.0


def test_time_within_another_category_is_not_counted_twice() -> None:
    clock = Clock()
    goodput = Goodput(clock)
    with goodput.during("step"):
        clock.now += 3
        with goodput.during("checkpoint_stall"):
            clock.now += 5
        clock.now += 1

    assert goodput.seconds["step"] == 4
    assert goodput.seconds["checkpoint_stall"] == 5
    assert goodput.ratio == 4 / 9
