"""Whether anything grows: memory, files, threads and series of the operator, and rank 0's."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pretrain_testing.soak.bounds import MIB, Bounds
from pretrain_testing.soak.readings import OperatorReading, RankReading

END_SHARE = 5
"""First and last are medians of this part of the readings, at either end."""

_HOUR = 3600.0


@dataclass(frozen=True)
class Growth:
    """One operator's process from its warm-up to its end: first and last of each figure.

    `slope` is that of its memory by least squares, in bytes an hour.
    """

    process: str
    seconds: float
    resident: tuple[float, float]
    slope: float
    files: tuple[float, float]
    threads: tuple[float, float]
    series: tuple[Mapping[str, int], Mapping[str, int]]


def growths(readings: Sequence[OperatorReading], bounds: Bounds) -> list[Growth]:
    """Of each process that led beyond its warm-up, in the order in which they came."""
    by_process: dict[str, list[OperatorReading]] = defaultdict(list)
    for reading in readings:
        if reading.leads:
            by_process[reading.process].append(reading)
    warm = (_warm(mine, bounds) for mine in by_process.values())
    return [_growth(mine) for mine in warm if len(mine) >= 2]


def judge_operator(found: Sequence[Growth], *, seconds: float, bounds: Bounds) -> list[str]:
    """A sentence for each thing that grew, and one if none was watched for long enough."""
    wanted = bounds.watched_share * seconds
    watched = [growth for growth in found if growth.seconds >= wanted]
    if not watched:
        longest = max((growth.seconds for growth in found), default=0.0)
        return [
            f"No operator was watched for {wanted:.0f} s after its warm-up, the longest for "
            f"{longest:.0f} s."
        ]
    return [sentence for growth in watched for sentence in _grown(growth, bounds)]


def judge_rank_0(readings: Sequence[RankReading], bounds: Bounds) -> list[str]:
    """Series from the first attempt to the last and within each; files of each worker's /tmp."""
    attempts: dict[int, list[RankReading]] = defaultdict(list)
    for reading in readings:
        attempts[reading.attempt].append(reading)
    settled = {number: _settled(mine) for number, mine in sorted(attempts.items())}
    pairs = [(f"in attempt {number}", mine[0], mine[-1]) for number, mine in settled.items()]
    lasts = [mine[-1] for mine in settled.values()]
    over_all = [("from the first attempt to the last", lasts[0], lasts[-1])] if lasts else []
    return [*_rank_series([*pairs, *over_all], bounds), *_worker_files(pairs, bounds)]


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Units an hour of the straight line through (seconds, value) by least squares."""
    at = [moment for moment, _ in points]
    if len(set(at)) < 2:
        return 0.0
    return statistics.linear_regression(at, [value for _, value in points]).slope * _HOUR


def _warm(mine: Sequence[OperatorReading], bounds: Bounds) -> list[OperatorReading]:
    return [reading for reading in mine if reading.at - mine[0].at >= bounds.warm_up_seconds]


def _growth(mine: Sequence[OperatorReading]) -> Growth:
    part = max(1, len(mine) // END_SHARE)
    ends = mine[:part], mine[-part:]

    def first_and_last(figure: str) -> tuple[float, float]:
        first, last = (statistics.median(getattr(one, figure) for one in end) for end in ends)
        return first, last

    return Growth(
        process=mine[0].process,
        seconds=mine[-1].at - mine[0].at,
        resident=first_and_last("resident"),
        slope=slope([(one.at, one.resident) for one in mine]),
        files=first_and_last("files"),
        threads=first_and_last("threads"),
        series=(mine[0].series, mine[-1].series),
    )


def _grown(growth: Growth, bounds: Bounds) -> Iterator[str]:
    who, (first, last) = f"The operator {growth.process}", growth.resident
    if last - first > bounds.resident_bytes:
        yield (
            f"{who} grew from {first / MIB:.1f} to {last / MIB:.1f} MiB in {growth.seconds:.0f} s;"
            f" {bounds.resident_bytes / MIB:.0f} MiB are allowed."
        )
    if growth.seconds >= bounds.slope_seconds and growth.slope > bounds.resident_slope:
        yield (
            f"{who} grew by {growth.slope / MIB:.1f} MiB an hour over {growth.seconds:.0f} s; "
            f"{bounds.resident_slope / MIB:.0f} are allowed."
        )
    for figure, (before, after), allowed in (
        ("open files", growth.files, bounds.files),
        ("threads", growth.threads, bounds.threads),
    ):
        if after - before > allowed:
            yield f"{who} had {before:g} {figure} at first and {after:g} at last."
    yield from (f"{who}: {text}" for text in _more(*growth.series, bounds.operator_series, 0))


def _settled(mine: Sequence[RankReading]) -> list[RankReading]:
    """Without the first half of an attempt, in which its families come up one after the other."""
    return list(mine[len(mine) // 2 :])


def _rank_series(
    pairs: Sequence[tuple[str, RankReading, RankReading]], bounds: Bounds
) -> Iterator[str]:
    for when, first, last in pairs:
        grown = _more(first.series, last.series, bounds.rank_series, bounds.other_rank_series)
        yield from (f"Rank 0, {when}: {text}" for text in grown)


def _worker_files(
    pairs: Sequence[tuple[str, RankReading, RankReading]], bounds: Bounds
) -> Iterator[str]:
    for when, first, last in pairs:
        if last.files - first.files > bounds.worker_files:
            yield f"Rank 0's /tmp went from {first.files} to {last.files} files {when}."


def _more(
    first: Mapping[str, int], last: Mapping[str, int], allowed: Mapping[str, int], others: int
) -> Iterator[str]:
    for family, count in sorted(last.items()):
        before = first.get(family, 0)
        if count - before > allowed.get(family, others):
            yield f"{family} went from {before} to {count} series."
