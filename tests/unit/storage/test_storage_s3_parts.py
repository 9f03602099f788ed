"""How a file is cut into parts."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_jobs.errors import UserError
from pretrain_jobs.storage.s3_upload import (
    MEMORY_LIMIT_BYTES,
    PART_LIMIT_BYTES,
    PARTS_LIMIT,
    part_size,
    split,
)

SMALLEST = 16 << 20
LARGEST_FILE = PARTS_LIMIT * PART_LIMIT_BYTES


@settings(deadline=None)
@given(size=st.integers(1, LARGEST_FILE))
def test_no_file_needs_more_than_ten_thousand_parts_nor_one_of_over_five_minutes(
    size: int,
) -> None:
    chosen = part_size(size, smallest=SMALLEST)

    assert -(-size // chosen) <= PARTS_LIMIT
    assert SMALLEST <= chosen <= PART_LIMIT_BYTES
    assert chosen / 1_000_000 <= 300


@settings(deadline=None)
@given(size=st.integers(1, 10_000), part_bytes=st.integers(1, 10_000))
def test_parts_cover_a_file_once_and_in_order(size: int, part_bytes: int) -> None:
    parts = split(size, part_bytes=part_bytes)

    assert [part.number for part in parts] == list(range(1, len(parts) + 1))
    assert parts[0].offset == 0
    assert all(a.offset + a.size == b.offset for a, b in pairwise(parts))
    assert parts[-1].offset + parts[-1].size == size
    assert {part.size for part in parts[:-1]} <= {part_bytes}
    assert 0 < parts[-1].size <= part_bytes


def test_a_shard_of_300_gb_has_parts_of_a_few_seconds_that_fit_into_memory() -> None:
    chosen = part_size(300 * 10**9, smallest=SMALLEST)

    assert chosen == 29 << 20
    assert 2 * chosen <= MEMORY_LIMIT_BYTES


def test_a_file_beyond_the_limits_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UserError, match="too large for one object"):
        part_size(LARGEST_FILE + 1, smallest=SMALLEST)
