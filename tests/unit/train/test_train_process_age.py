"""Since when a process lives."""

import time

import pytest
from pretrain_jobs.train.process_age import handed_down, start_of, started

STAT = "4711 (a name) with ) (in it) S 1 4711 4711 0 -1 4194560 {} 25000 1000 200"


def test_the_start_is_read_behind_whatever_a_process_is_called() -> None:
    between = " ".join(str(number) for number in range(12))

    assert start_of(STAT.format(between), ticks_per_second=100) == 250.0


def test_a_process_started_before_now() -> None:
    assert started() < time.monotonic()


@pytest.mark.parametrize(
    ("text", "expected"), [("12.5", 12.5), ("", None), (None, None), ("x", None)]
)
def test_only_a_number_is_handed_down(text: str | None, expected: float | None) -> None:
    assert handed_down(text) == expected
