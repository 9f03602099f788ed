"""Samples that every stage's process has: its memory, its open files, its S3 requests."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from pretrain_jobs.storage.s3_requests import request_counts
from pretrain_jobs.telemetry import families
from pretrain_jobs.telemetry.samples import Sample

_STATM = Path("/proc/self/statm")
_FILES = Path("/proc/self/fd")
_SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - looked at, not written to


def process_samples() -> Iterator[Sample]:
    """Read what Linux tells of this process, and its counts of S3 requests."""
    pages = int(_STATM.read_text().split()[1])
    yield Sample(families.RESIDENT_MEMORY, pages * resource.getpagesize())
    yield Sample(families.OPEN_FILES, sum(1 for _ in _FILES.iterdir()))
    if _SHARED_MEMORY.exists():
        shared = os.statvfs(_SHARED_MEMORY)
        yield Sample(families.SHARED_MEMORY, (shared.f_blocks - shared.f_bfree) * shared.f_frsize)
    counts = request_counts()
    for (operation, code), number in sorted(counts.requests.items()):
        yield Sample(families.S3_REQUESTS, number, (operation, code))
    yield Sample(families.S3_RETRIES, counts.retries)
