"""What nodes were left with by an attempt that was killed before it had uploaded its save."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint.cleaning import sweep_abandoned
from pretrain_jobs.checkpoint.completing import complete_newest
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.files import encode_json
from pretrain_jobs.checkpoint.generations import claim
from pretrain_jobs.checkpoint.handing_over import Holding, hand_over, plan
from pretrain_jobs.checkpoint.layout import LATEST, CheckpointKey
from pretrain_jobs.checkpoint.local_copy import LocalCopies
from pretrain_jobs.checkpoint.survey import survey_store
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_testing.stored_checkpoints import ATTEMPT, store_checkpoint
from pretrain_testing.thread_ranks import ThreadRank, run_threads

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    store = open_store(StorageSpec(uri=(tmp_path / "checkpoints").as_uri()))
    claim(store, attempt=ATTEMPT, lineage="own")
    return store


@pytest.fixture
def nodes(tmp_path: Path) -> list[LocalCopies]:
    return [LocalCopies(tmp_path / f"node-{number}") for number in range(2)]


def leave(nodes: Sequence[LocalCopies], step: int, *, generation: int = 1) -> CheckpointKey:
    """Leave one rank's whole save on each of the nodes."""
    for node, copies in enumerate(nodes):
        key = store_checkpoint(copies.store, step, generation=generation, committed=False).key
        for rank in {0, 1} - {node}:
            copies.forget(key, rank)
    return key


def start(
    store: ObjectStore, nodes: Sequence[LocalCopies], *, attempt: str = "2" * 32
) -> list[int]:
    """The steps that are committed once an attempt with a rank on each node has begun."""
    generation = claim(store, attempt=attempt, lineage="own")

    def begin(rank: ThreadRank) -> None:
        hand_over(store, rank, generation, nodes[rank.rank])

    run_threads(begin, len(nodes))
    complete_newest(store, generation, lineage="own", now=NOW)
    return [commit.step for commit in survey_store(store, lineage="own").candidates]


def test_a_save_that_was_never_uploaded_is_committed_with_the_bytes_that_were_left(
    store: ObjectStore, nodes: list[LocalCopies]
) -> None:
    store_checkpoint(store, 100)
    key = leave(nodes, 200)

    assert start(store, nodes) == [200, 100]
    for rank, copies in enumerate(nodes):
        for name in (key.rank_file(rank, "rank.json"), key.rank_manifest(rank)):
            assert store.read(name) == copies.store.read(name)


def test_what_the_store_has_already_is_not_uploaded_again(
    store: ObjectStore, nodes: list[LocalCopies]
) -> None:
    key = store_checkpoint(store, 200, committed=False).key
    leave(nodes, 200)
    store.delete(key.rank_manifest(1))
    before = {info.key: info.etag for info in store.list(key.prefix)}

    assert start(store, nodes) == [200]
    after = {info.key: info.etag for info in store.list(key.prefix)}
    assert set(after) - set(before) == {key.rank_manifest(1), key.commit}
    assert {name: after[name] for name in before} == before


def test_without_one_of_the_nodes_nothing_is_uploaded(
    store: ObjectStore, nodes: list[LocalCopies], tmp_path: Path
) -> None:
    store_checkpoint(store, 100)
    key = leave(nodes, 200)

    assert start(store, [nodes[0], LocalCopies(tmp_path / "new")]) == [100]
    assert not list(store.list(key.prefix))


def test_on_one_node_with_all_shares_another_number_of_ranks_uploads_them(
    store: ObjectStore, nodes: list[LocalCopies]
) -> None:
    store_checkpoint(nodes[0].store, 200, world_size=3, committed=False)
    assert start(store, [nodes[0]]) == [200]


@pytest.mark.parametrize("name", ["rank.json", "zero_pp_rank_1_mp_rank_00_optim_states.pt"])
def test_a_file_that_has_changed_on_the_node_leaves_the_save_before_it(
    store: ObjectStore, nodes: list[LocalCopies], name: str
) -> None:
    leave(nodes, 200)
    key = leave(nodes, 300)
    path = nodes[1].place(key, 1) / name
    path.write_bytes(b"x" * path.stat().st_size)

    assert start(store, nodes) == [200]


def test_of_several_saves_the_newest_alone_is_uploaded(
    store: ObjectStore, nodes: list[LocalCopies]
) -> None:
    older = leave(nodes, 200)
    leave(nodes, 300)

    assert start(store, nodes) == [300]
    assert not list(store.list(older.prefix))


def test_nothing_at_or_below_the_last_step_that_was_committed_is_uploaded(
    store: ObjectStore, nodes: list[LocalCopies]
) -> None:
    """Also where its COMMIT was taken away: the hint tells of it."""
    leave(nodes, 200)
    store.write(LATEST, encode_json({"step": 200}))
    assert start(store, nodes) == []

    store.delete(LATEST)
    store_checkpoint(store, 250)
    assert start(store, nodes, attempt="3" * 32) == [250]


def test_what_was_given_up_stays_given_up(store: ObjectStore, nodes: list[LocalCopies]) -> None:
    leave(nodes, 200)
    store_checkpoint(store, 200, committed=False)
    second = claim(store, attempt="2" * 32, lineage="own")
    sweep_abandoned(store, second, Failpoints(), now=NOW)

    assert start(store, nodes, attempt="3" * 32) == []


def test_what_an_attempt_of_now_or_later_left_is_its_own(
    store: ObjectStore, nodes: list[LocalCopies]
) -> None:
    leave(nodes, 200, generation=2)
    assert start(store, nodes, attempt=ATTEMPT) == []


def test_a_save_of_an_attempt_that_the_store_does_not_know_is_left_alone(
    store: ObjectStore, nodes: list[LocalCopies]
) -> None:
    """The store was emptied since, to begin anew."""
    leave(nodes, 200)
    for info in list(store.list()):
        store.delete(info.key)
    claim(store, attempt="9" * 32, lineage="own")

    assert start(store, nodes) == []


def test_another_runs_save_is_not_committed(store: ObjectStore, nodes: list[LocalCopies]) -> None:
    store_checkpoint(nodes[0].store, 200, lineage="other", committed=False)
    assert start(store, [nodes[0]]) == []


def test_an_attempt_that_was_replaced_meanwhile_uploads_nothing(
    store: ObjectStore, nodes: list[LocalCopies]
) -> None:
    key = leave(nodes, 200)
    old = claim(store, attempt="2" * 32, lineage="own")
    claim(store, attempt="3" * 32, lineage="own")

    run_threads(lambda rank: hand_over(store, rank, old, nodes[rank.rank]), 2)

    assert not list(store.list(key.prefix))


KEY = CheckpointKey(7, 1, ATTEMPT)
shares = st.sets(st.integers(0, 4))


@given(held=st.lists(shares, min_size=1, max_size=5), stored=shares, world_size=st.integers(1, 5))
def test_every_share_that_is_missing_is_carried_once_by_a_rank_that_has_it(
    held: list[set[int]], stored: set[int], world_size: int
) -> None:
    holdings = [Holding(tuple((KEY, rank) for rank in ranks)) for ranks in held]
    there = set(range(world_size))

    errands = plan(holdings, {(KEY, rank) for rank in stored}, {KEY: world_size})

    if there <= stored or not there <= stored.union(*held):
        assert errands == ()
    else:
        [errand] = errands
        assert errand.carriers.keys() == there - stored
        assert all(rank in held[carrier] for rank, carrier in errand.carriers.items())


def test_how_many_ranks_saved_is_told_by_the_share_of_rank_0_wherever_it_lies() -> None:
    first = Holding(((KEY, 0),), {KEY: 2})
    second = Holding(((KEY, 1),))

    [errand] = plan([second, first], set(), {})

    assert errand.carriers == {0: 1, 1: 0}
    assert plan([second], {(KEY, 0)}, {}) == ()
