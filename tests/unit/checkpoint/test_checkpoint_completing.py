"""What an attempt commits in the place of one that died after all was stored."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint.cleaning import sweep_abandoned, withdraw_checkpoint
from pretrain_jobs.checkpoint.completing import complete_newest
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.files import encode_json
from pretrain_jobs.checkpoint.generations import Generation, claim
from pretrain_jobs.checkpoint.layout import LATEST, CheckpointKey
from pretrain_jobs.checkpoint.manifest import Commit
from pretrain_jobs.checkpoint.survey import survey_store
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_testing.stored_checkpoints import ATTEMPT, store_checkpoint

NOW = datetime(2026, 1, 2, tzinfo=UTC)
NEXT = Generation(2, "2" * 32)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    """A store in which the attempt of now is the newest."""
    store = open_store(StorageSpec(uri=(tmp_path / "checkpoints").as_uri()))
    for name in ("1" * 32, NEXT.attempt):
        claim(store, attempt=name, lineage="own")
    return store


def candidates(store: ObjectStore) -> tuple[Commit, ...]:
    return survey_store(store, lineage="own").candidates


def complete(store: ObjectStore) -> list[int]:
    """The steps that are committed after another attempt has looked."""
    complete_newest(store, NEXT, lineage="own", now=NOW)
    return [commit.step for commit in candidates(store)]


def test_a_checkpoint_that_is_whole_but_for_its_commit_is_committed(store: ObjectStore) -> None:
    store_checkpoint(store, 100)
    stored = store_checkpoint(store, 200, committed=False)

    assert complete(store) == [200, 100]
    assert candidates(store)[0] == stored.model_copy(update={"time": NOW})


def test_only_the_newest_of_those_is_committed(store: ObjectStore) -> None:
    store_checkpoint(store, 100, committed=False)
    store_checkpoint(store, 200, committed=False)
    assert complete(store) == [200]


def test_nothing_older_than_a_commit_is_committed(store: ObjectStore) -> None:
    store_checkpoint(store, 100, committed=False)
    store_checkpoint(store, 200)
    assert complete(store) == [200]


def test_a_commit_that_was_taken_away_is_not_written_again(store: ObjectStore) -> None:
    store_checkpoint(store, 200, committed=False)
    store.write(LATEST, encode_json({"step": 200}))
    assert complete(store) == []


def test_nor_is_one_that_was_made_in_a_dead_attempts_place(store: ObjectStore) -> None:
    key = store_checkpoint(store, 200, committed=False).key
    assert complete(store) == [200]

    store.delete(key.commit)

    assert complete(store) == []


def test_a_damaged_hint_says_nothing(store: ObjectStore) -> None:
    store_checkpoint(store, 200, committed=False)
    store.write(LATEST, b"[")
    assert complete(store) == [200]


def test_what_an_attempt_of_now_or_later_stores_is_its_own_to_commit(store: ObjectStore) -> None:
    store_checkpoint(store, 200, generation=2, committed=False)
    store_checkpoint(store, 300, generation=3, committed=False)
    assert complete(store) == []


def test_an_attempt_that_was_replaced_commits_nothing_in_anothers_place(store: ObjectStore) -> None:
    store_checkpoint(store, 200, committed=False)
    claim(store, attempt="3" * 32, lineage="own")
    assert complete(store) == []


def test_another_runs_checkpoint_is_left_alone(store: ObjectStore) -> None:
    store_checkpoint(store, 200, lineage="other", committed=False)
    assert complete(store) == []


def _delete(store: ObjectStore, key: str) -> None:
    store.delete(key)


def _cut(store: ObjectStore, key: str) -> None:
    store.write(key, store.read(key)[:-1])


OWN = CheckpointKey(200, 1, ATTEMPT)


@pytest.mark.parametrize("damage", [_delete, _cut])
@pytest.mark.parametrize(
    "place",
    [OWN.rank_manifest(0), OWN.rank_manifest(1), OWN.rank_file(1, "rank.json")],
    ids=["first manifest", "last manifest", "a file"],
)
def test_a_part_that_is_missing_or_cut_leaves_it_uncommitted(
    store: ObjectStore, place: str, damage: Callable[[ObjectStore, str], None]
) -> None:
    store_checkpoint(store, 100)
    store_checkpoint(store, 200, committed=False)
    damage(store, place)

    assert complete(store) == [100]


def test_what_was_given_up_stays_given_up_and_an_older_one_is_committed(store: ObjectStore) -> None:
    store_checkpoint(store, 200, committed=False)
    sweep_abandoned(store, NEXT, Failpoints(), now=NOW)
    store_checkpoint(store, 200, committed=False)
    store_checkpoint(store, 100, committed=False)
    assert complete(store) == [100]


def test_a_save_withdrawn_by_an_attempt_that_is_replaced_stays_out(store: ObjectStore) -> None:
    """The newer attempt may have seen its files before they went."""
    key = store_checkpoint(store, 200, generation=1, committed=False).key

    withdraw_checkpoint(store, key, Failpoints(), now=NOW)

    assert [info.key for info in store.list("step-")] == [key.commit]
