"""What an attempt does with what older ones never committed."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint.cleaning import sweep_abandoned, withdraw_checkpoint
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.generations import Generation
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.manifest import decode_abandonment
from pretrain_jobs.checkpoint.survey import survey_store
from pretrain_jobs.storage import AlreadyExistsError, ObjectStore, open_store
from pretrain_testing.stored_checkpoints import ATTEMPT, store_checkpoint

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(StorageSpec(uri=(tmp_path / "checkpoints").as_uri()))


def sweep(store: ObjectStore, *, generation: int, now: datetime = NOW) -> None:
    sweep_abandoned(store, Generation(generation, "1" * 32), Failpoints(), now=now)


def keys(store: ObjectStore) -> list[str]:
    return [info.key for info in store.list("step-")]


def test_only_what_older_attempts_never_committed_is_deleted(store: ObjectStore) -> None:
    committed = store_checkpoint(store, 100)
    store_checkpoint(store, 200, committed=False)
    store_checkpoint(store, 300, generation=2, committed=False)
    before = keys(store)

    sweep(store, generation=2)

    mark = CheckpointKey(200, 1, ATTEMPT).commit
    assert keys(store) == [
        *(key for key in before if key.startswith(committed.key.prefix)),
        mark,
        *(key for key in before if key.startswith("step-000000300/")),
    ]
    told = decode_abandonment(store.read(mark))
    assert told is not None
    assert (told.abandoned_by, told.time) == (2, NOW)


def test_what_was_given_up_cannot_be_committed_any_more_and_is_no_checkpoint(
    store: ObjectStore,
) -> None:
    store_checkpoint(store, 200, committed=False)
    sweep(store, generation=2)

    with pytest.raises(AlreadyExistsError):
        store.write(CheckpointKey(200, 1, ATTEMPT).commit, b"late", if_absent=True)
    survey = survey_store(store, lineage="own")
    assert (survey.candidates, survey.damaged, survey.uncommitted) == ((), (), ())


def test_files_that_come_after_the_mark_are_deleted_by_the_next_attempt(store: ObjectStore) -> None:
    store_checkpoint(store, 200, committed=False)
    sweep(store, generation=2)
    store_checkpoint(store, 200, committed=False)

    sweep(store, generation=3)

    assert keys(store) == [CheckpointKey(200, 1, ATTEMPT).commit]


def test_the_mark_goes_once_no_attempt_can_come_that_late(store: ObjectStore) -> None:
    store_checkpoint(store, 200, committed=False)
    sweep(store, generation=2)

    sweep(store, generation=3, now=NOW + timedelta(hours=23))
    assert keys(store)
    sweep(store, generation=4, now=NOW + timedelta(hours=25))
    assert not keys(store)


def test_a_failed_save_is_withdrawn_so_that_its_step_may_be_saved_again(store: ObjectStore) -> None:
    key = store_checkpoint(store, 200, committed=False).key
    assert withdraw_checkpoint(store, key, Failpoints(), now=NOW)
    assert not keys(store)


def test_a_save_that_was_committed_after_all_is_not_withdrawn(store: ObjectStore) -> None:
    key = store_checkpoint(store, 200).key
    before = keys(store)
    assert not withdraw_checkpoint(store, key, Failpoints(), now=NOW)
    assert keys(store) == before
