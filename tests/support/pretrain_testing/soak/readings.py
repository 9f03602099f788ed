"""What was read of the operator's and the workers' processes at a moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from pretrain_testing.scrapes import Scrape
from pretrain_testing.soak.children import Told

CREATED = "_created"
"""Ends the name of the family of times that goes with a counter's."""


@dataclass(frozen=True)
class OperatorReading:
    """One replica, so many seconds after the soak began.

    `process` names its pod and process id; `resident` is in bytes, `files` are open ones; `series`
    are numbers by family.
    """

    at: float
    process: str
    leads: bool
    resident: int
    files: int
    threads: int
    series: Mapping[str, int]


@dataclass(frozen=True)
class RankReading:
    """Rank 0 of an attempt; `files` are those in its pod's /tmp."""

    at: float
    attempt: int
    files: int
    series: Mapping[str, int]


@dataclass
class Seen:
    """All that was read so far; events by their uid."""

    operators: list[OperatorReading] = field(default_factory=list)
    ranks: list[RankReading] = field(default_factory=list)
    events: dict[str, Told] = field(default_factory=dict)


def series_of(scrape: Scrape) -> dict[str, int]:
    """How many series each family has, a counter's times counted with it."""
    found: Counter[str] = Counter()
    for metric in scrape.metrics:
        found[metric.name.removesuffix(CREATED)] += len(metric.samples)
    return dict(found)
