"""Growth of the operator and of rank 0's figures: told where it is one, not where it is none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from pretrain_testing.scrapes import Scrape
from pretrain_testing.soak.bounds import BOUNDS, MIB
from pretrain_testing.soak.growth import growths, judge_operator, judge_rank_0, slope
from pretrain_testing.soak.readings import OperatorReading, RankReading, series_of
from prometheus_client.parser import text_string_to_metric_families

SECONDS = 1800.0
STEP = 5.0
READING = OperatorReading(
    at=0.0,
    process="operator-a/7",
    leads=True,
    resident=80 * MIB,
    files=14,
    threads=9,
    series={"pretrain_job_step": 1},
)
RANK = RankReading(at=0.0, attempt=0, files=20, series={"pretrain_loss": 2})


def operator(
    changed: Callable[[OperatorReading], OperatorReading] = lambda reading: reading,
) -> list[OperatorReading]:
    """Readings of one that leads all the time, each changed."""
    moments = [STEP * number for number in range(int(SECONDS / STEP))]
    return [changed(replace(READING, at=at)) for at in moments]


def judged(readings: list[OperatorReading]) -> list[str]:
    return judge_operator(growths(readings, BOUNDS), seconds=SECONDS, bounds=BOUNDS)


def test_an_operator_that_stays_as_it_is_has_nothing_wrong() -> None:
    assert judged(operator()) == []


def test_memory_that_a_warm_up_took_is_no_growth() -> None:
    def warming(reading: OperatorReading) -> OperatorReading:
        return replace(reading, resident=(40 if reading.at < 30 else 80) * MIB)

    assert judged(operator(warming)) == []


def test_memory_that_grows_to_the_end_is_told_with_its_slope() -> None:
    def leaking(reading: OperatorReading) -> OperatorReading:
        return replace(reading, resident=round((80 + reading.at / 60) * MIB))

    grew, sloped = judged(operator(leaking))
    assert grew.startswith("The operator operator-a/7 grew from 83.8 to 107.1 MiB")
    assert "60.0 MiB an hour" in sloped


def test_a_burst_in_a_short_watch_is_no_slope() -> None:
    readings = [
        replace(one, resident=one.resident + int(one.at > 200) * MIB)
        for one in operator()
        if one.at < 400
    ]

    assert judged(readings) == [
        "No operator was watched for 360 s after its warm-up, the longest for 335 s."
    ]
    assert judge_operator(growths(readings, BOUNDS), seconds=400, bounds=BOUNDS) == []


def test_files_and_threads_that_become_more_are_told() -> None:
    def leaking(reading: OperatorReading) -> OperatorReading:
        count = 10 + int(reading.at // 100)
        return replace(reading, files=count, threads=count)

    files, threads = judged(operator(leaking))
    assert files == "The operator operator-a/7 had 12 open files at first and 26 at last."
    assert threads == "The operator operator-a/7 had 12 threads at first and 26 at last."


def test_a_family_gets_only_the_series_that_its_labels_have_values_for() -> None:
    def counting(reading: OperatorReading) -> OperatorReading:
        late = reading.at > 900
        series = {"pretrain_job_restarts": 2 * late, "pretrain_job_step": 1 + late}
        return replace(reading, series=series)

    assert judged(operator(counting)) == [
        "The operator operator-a/7: pretrain_job_step went from 1 to 2 series."
    ]


def test_each_process_is_judged_by_itself_and_only_while_it_leads() -> None:
    def succeeding(reading: OperatorReading) -> OperatorReading:
        if reading.at < 600:
            return replace(reading, process="operator-b/9", resident=60 * MIB)
        return replace(reading, resident=100 * MIB)

    standby = [replace(one, leads=False, resident=50 * MIB) for one in operator()]
    assert judged([*standby, *operator(succeeding)]) == []


def test_without_readings_it_is_said_that_nobody_was_watched() -> None:
    (sentence,) = judged([])
    assert sentence.startswith("No operator was watched")


def ranks(*, files: int = 20, **series: int) -> list[RankReading]:
    """Three attempts, in the last of which rank 0 has other figures at its end."""
    readings = [
        replace(RANK, attempt=attempt, at=attempt * 600 + STEP * number)
        for attempt in range(3)
        for number in range(100)
    ]
    return [*readings[:-1], replace(readings[-1], files=files, series={**RANK.series, **series})]


def test_rank_0_that_stays_as_it_is_has_nothing_wrong() -> None:
    assert judge_rank_0(ranks(), BOUNDS) == []


def test_series_of_rank_0_that_become_more_are_told() -> None:
    sentences = judge_rank_0(ranks(pretrain_loss=40), BOUNDS)

    assert sentences == [
        "Rank 0, in attempt 2: pretrain_loss went from 2 to 40 series.",
        "Rank 0, from the first attempt to the last: pretrain_loss went from 2 to 40 series.",
    ]


def test_files_that_gather_in_a_worker_are_told() -> None:
    assert judge_rank_0(ranks(files=70), BOUNDS) == [
        "Rank 0's /tmp went from 20 to 70 files in attempt 2."
    ]


def test_what_an_attempt_writes_as_it_starts_does_not_gather() -> None:
    readings = [replace(RANK, at=STEP * number, files=min(60, number)) for number in range(200)]

    assert judge_rank_0(readings, BOUNDS) == []


def test_no_readings_of_rank_0_are_nothing_that_grew() -> None:
    assert judge_rank_0([], BOUNDS) == []


def test_a_slope_is_per_hour_and_that_of_one_moment_is_none() -> None:
    assert slope([(0.0, 1.0), (1800.0, 2.0), (3600.0, 3.0)]) == pytest.approx(2.0)
    assert slope([(5.0, 1.0), (5.0, 9.0)]) == 0.0


def test_the_times_of_a_counter_are_counted_with_it() -> None:
    text = (
        '# TYPE a_total counter\na_total{code="1"} 1\na_total{code="2"} 1\n'
        '# TYPE a_created gauge\na_created{code="1"} 5\na_created{code="2"} 5\n'
    )

    assert series_of(Scrape(text, tuple(text_string_to_metric_families(text)))) == {"a": 4}
