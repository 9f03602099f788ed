"""Names of checkpoints: to keys and back, in the order of numbers."""

from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.checkpoint.layout import (
    CheckpointKey,
    generation_key,
    group_keys,
    parse_generation,
)

ATTEMPT = "0" * 32
keys = st.builds(
    CheckpointKey,
    step=st.integers(0, 10**10),
    generation=st.integers(1, 10**7),
    attempt=st.text("0123456789abcdef", min_size=32, max_size=32),
)


@given(st.lists(keys, unique=True))
def test_checkpoints_are_read_back_from_their_keys_the_newest_first(
    checkpoints: list[CheckpointKey],
) -> None:
    names = [name for key in checkpoints for name in (key.commit, key.rank_file(3, "state.pt"))]

    listed = group_keys(sorted(names))

    assert [found.key for found in listed] == sorted(checkpoints, reverse=True)
    assert all(found.committed for found in listed)


def test_steps_are_ordered_as_numbers_where_their_names_get_longer() -> None:
    old, new = CheckpointKey(999_999_999, 1, ATTEMPT), CheckpointKey(1_000_000_000, 1, ATTEMPT)

    listed = group_keys([old.commit, new.commit])

    assert [found.key for found in listed] == [new, old]


def test_a_checkpoint_without_commit_is_not_committed_whatever_else_is_there() -> None:
    key = CheckpointKey(8, 2, ATTEMPT)

    (listed,) = group_keys([key.rank_manifest(0), key.rank_file(0, "COMMIT")])

    assert not listed.committed


def test_other_keys_are_left_out() -> None:
    assert group_keys(["LATEST", "gen-000001", "logs/log.jsonl", "step-8/COMMIT"]) == ()


@given(st.integers(1, 10**8))
def test_a_generation_is_read_back_from_its_key(number: int) -> None:
    assert parse_generation(generation_key(number)) == number
    assert parse_generation(generation_key(number) + ".tmp") is None
