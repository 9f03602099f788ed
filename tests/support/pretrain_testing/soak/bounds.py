"""What a soak may find at most, each bound with its reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

MIB = 1 << 20


@dataclass(frozen=True)
class Bounds:
    """The bounds; another soak may set others."""

    goodput_share: float = 0.01
    goodput_seconds: float = 2.0
    """How far the categories may be from the wall clock: one per cent of it, as is promised, and
    one poll of the operator, as what it has not asked for yet is in no category."""

    warm_up_seconds: float = 60.0
    """An operator that begins to lead fills its caches, opens its watches, starts its threads."""

    watched_share: float = 0.2
    """One operator must be watched for this share of the soak after its warm-up."""

    resident_bytes: int = 12 * MIB
    """Growth of its memory: arenas of Python's allocator come and go in MiBs, as bursts of events
    after a kill are read; more than these is kept by somebody."""

    resident_slope: float = 32 * MIB
    """Bytes an hour: what 18 KiB kept of every poll, or 5 MiB of every restart, come to."""

    slope_seconds: float = 600.0
    """Over less time a burst makes any slope."""

    files: int = 6
    """Connections to the API server and to two workers that happen to be open at a look."""

    threads: int = 4
    """A pool starts its threads when it first needs them."""

    operator_series: Mapping[str, int] = field(
        default_factory=lambda: {
            "pretrain_job_restarts": 4,
            "pretrain_job_goodput_seconds": 12,
            "pretrain_job_condition": 7,
            "pretrain_job_goodput_ratio": 1,
            "pretrain_operator_api_requests": 30,
        }
    )
    """Series that a family may get in an operator's life, as values of its labels come up: causes,
    categories, conditions; verbs, resources and codes. No other family may get any."""

    rank_series: Mapping[str, int] = field(
        default_factory=lambda: {"pretrain_job_time_seconds": 8, "pretrain_s3_requests": 24}
    )
    """The same of rank 0's: categories; operations and codes."""

    other_rank_series: int = 4
    """Of any other family of rank 0's: causes of a failed save, sources of a restore."""

    worker_files: int = 12
    """Files in a worker's /tmp over one attempt: those of a save that is being written."""

    spare_commits: int = 1
    """Beyond `keepLast`: the one that the attempt resumed from stays until the last save."""

    partial_saves: int = 2
    """Of the newest attempt: what a save left that the end, or storage that was away, broke off;
    the next attempt would sweep it."""

    readings_share: float = 0.3
    """Of the readings that there was time for, so many must have been taken: nobody leads, and no
    rank 0 is there, for a while after a kill."""


BOUNDS = Bounds()
