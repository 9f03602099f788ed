"""Which checkpoints go: a pure choice over numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.checkpoint.layout import CheckpointKey, Listed
from pretrain_jobs.checkpoint.retention import deletion_order, superseded

ATTEMPT = "0" * 32


def key(step: int, generation: int = 1) -> CheckpointKey:
    return CheckpointKey(step, generation, ATTEMPT)


def steps(keys: tuple[CheckpointKey, ...]) -> list[int]:
    return [found.step for found in keys]


@pytest.mark.parametrize("last", [10_000, 100_100])
def test_the_oldest_by_number_goes_where_names_would_sort_otherwise(last: int) -> None:
    commits = [key(step) for step in range(last - 1000, last + 1, 100)]

    gone = superseded(commits, keep_last=10, keep_every_steps=None)

    assert steps(gone) == [last - 1000]


def test_multiples_of_keep_every_steps_stay() -> None:
    commits = [key(step) for step in range(100, 1100, 100)]

    gone = superseded(commits, keep_last=2, keep_every_steps=500)

    assert steps(gone) == [100, 200, 300, 400, 600, 700, 800]


def test_the_checkpoint_that_was_resumed_from_stays() -> None:
    commits = [key(1), key(2), key(3)]

    gone = superseded(commits, keep_last=1, keep_every_steps=None, kept={key(1)})

    assert steps(gone) == [2]


def test_damaged_checkpoints_go_and_do_not_count() -> None:
    commits = [key(1), key(2), key(3), key(4)]

    gone = superseded(commits, keep_last=2, keep_every_steps=2, damaged={key(4)})

    assert steps(gone) == [1, 4]


@given(
    st.lists(st.integers(1, 50), min_size=1, unique=True), st.integers(1, 10), st.integers(1, 20)
)
def test_the_newest_commit_always_stays(
    numbers: list[int], keep_last: int, keep_every: int
) -> None:
    gone = superseded(map(key, numbers), keep_last=keep_last, keep_every_steps=keep_every)

    assert max(numbers) not in steps(gone)
    assert len(numbers) - len(gone) >= min(keep_last, len(numbers))


def test_commit_is_deleted_before_anything_it_vouches_for() -> None:
    names = (key(1).rank_file(0, "a.pt"), key(1).commit, key(1).rank_manifest(0))

    assert deletion_order(Listed(key(1), names))[0] == key(1).commit
