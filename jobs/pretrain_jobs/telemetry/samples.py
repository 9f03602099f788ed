"""Samples of families, and the places of this process that have some to give.

A stage publishes a source once and goes on with its work; samples are made when somebody asks.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from pretrain_jobs.telemetry.families import Family

_sources: list[Source] = []


@dataclass(frozen=True)
class Counted:
    """A histogram's state: observations up to each bucket's bound and in all, and their sum."""

    buckets: tuple[tuple[float, int], ...]
    count: int
    total: float


@dataclass(frozen=True)
class Sample:
    """A value of a family, with the values of the family's own labels. None is not exported."""

    family: Family
    value: float | Counted | None
    labels: tuple[str, ...] = ()


class Source(Protocol):
    """Something that has samples to give, in any thread and at any time."""

    def samples(self) -> Iterable[Sample]:
        """The samples of this moment; what it reads is replaced whole, never changed in place."""
        ...


class Histogram:
    """Counts observations of a family; one thread observes, others read."""

    def __init__(self, family: Family) -> None:
        self._family = family
        self._counts = [0] * (len(family.buckets) + 1)
        self._total = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._family.buckets, value)] += 1
        self._total += value

    def sample(self) -> Sample:
        """What was counted so far."""
        *below, count = accumulate(self._counts.copy())
        buckets = tuple(zip(self._family.buckets, below, strict=True))
        return Sample(self._family, Counted(buckets, count, self._total))


@contextmanager
def published(source: Source) -> Iterator[None]:
    """Give the source's samples to whoever scrapes this process, until the block ends."""
    _sources.append(source)
    try:
        yield
    finally:
        _sources.remove(source)


def published_samples() -> Iterator[Sample]:
    """The samples of everything that is published now."""
    for source in tuple(_sources):
        yield from source.samples()
