"""Every second belongs to one category."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.timesheet import EarlierAttempts, TimeSheet
from pretrain_jobs.train.goodput import CATEGORIES, Goodput, extended

START = datetime(2026, 1, 1, tzinfo=UTC)


class Clock:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def wall(self) -> datetime:
        return START + timedelta(seconds=self.now)


def told(began: int, at: int, **seconds: float) -> EarlierAttempts:
    """What was told of attempts since a moment of the clock up to another."""
    wall = [START + timedelta(seconds=moment) for moment in (began, at)]
    return EarlierAttempts(time=TimeSheet(began=wall[0], at=wall[1], seconds=seconds))


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


def test_the_books_begin_with_the_pod_not_with_the_rank() -> None:
    clock = Clock()
    goodput = Goodput(clock, since=92.0, wall=clock.wall)
    clock.now += 3

    assert goodput.seconds["init"] == 11
    assert goodput.sheet.began == START + timedelta(seconds=92)
    assert goodput.sheet.at == START + timedelta(seconds=103)


def test_a_start_that_lies_ahead_is_now() -> None:
    clock = Clock()

    assert Goodput(clock, since=200.0).seconds["init"] == 0


def test_a_sheet_goes_on_from_the_one_that_holds_more() -> None:
    clock = Clock()
    stored, heard = told(0, 40, init=10, step=30).time, told(0, 60, step=50, init=10)
    for sheet, other in ((stored, heard), (heard.time, told(0, 40, init=10, step=30))):
        goodput = Goodput(clock, wall=clock.wall)
        goodput.go_on_from(sheet, other)
        with goodput.during("recompute"):
            clock.now += 20

        spent = {name: seconds for name, seconds in goodput.sheet.seconds.items() if seconds}
        assert spent == {"init": 10, "step": 50, "recompute": 20}
        assert goodput.sheet.began == START


def test_what_no_attempt_holds_counts_against_the_ratio_of_all() -> None:
    clock = Clock()
    goodput = Goodput(clock, wall=clock.wall)
    goodput.go_on_from(told(0, 60, step=60).time, None)
    with goodput.during("step"):
        clock.now += 20

    assert goodput.ratio == 1.0
    assert goodput.sheet.wall_seconds == 120
    assert goodput.sheet.ratio == 80 / 120


def test_a_category_of_another_version_is_kept() -> None:
    goodput = Goodput(Clock())
    goodput.go_on_from(told(0, 9, warming=9).time, None)

    assert goodput.sheet.seconds["warming"] == 9


def test_a_first_attempt_has_nothing_to_go_on_from() -> None:
    clock = Clock()
    goodput = Goodput(clock, wall=clock.wall)
    goodput.go_on_from(None, None)
    clock.now += 5

    assert goodput.sheet.seconds == goodput.seconds
    assert goodput.sheet.wall_seconds == 5


def test_the_end_of_a_process_is_idle_time_that_its_launcher_books() -> None:
    sheet = told(0, 60, step=50, idle=10).time

    later = extended(sheet, START + timedelta(seconds=75))

    assert later.seconds == {"step": 50, "idle": 25}
    assert (later.at - later.began).total_seconds() == later.booked == 75
    assert extended(sheet, START) == sheet
