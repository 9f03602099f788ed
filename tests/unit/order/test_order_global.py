"""The global order of samples: each once an epoch, batches cut from one endless sequence."""

from itertools import chain, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.dataset.order import Cursor, GlobalOrder
from pretrain_jobs.errors import CheckpointUnusableError

shard_sizes = st.lists(st.integers(0, 12), min_size=1, max_size=6).filter(any)


def batches(order: GlobalOrder, cursor: Cursor, size: int, count: int) -> list[list[int]]:
    taken = []
    for _ in range(count):
        _, ids, cursor = order.take(cursor, size)
        taken.append(ids.tolist())
    return taken


@given(sizes=shard_sizes, seed=st.integers(0, 2**32 - 1), epoch=st.integers(0, 5))
def test_an_epoch_has_every_sample_once(sizes, seed, epoch):
    order = GlobalOrder(seed, tuple(sizes))

    ids = order.slice(epoch, 0, order.samples_per_epoch)

    assert sorted(ids.tolist()) == list(range(sum(sizes)))


@given(sizes=shard_sizes, size=st.integers(1, 20), count=st.integers(1, 8), seed=st.integers(0, 9))
def test_batch_i_is_the_ith_stretch_of_the_endless_order(sizes, size, count, seed):
    order = GlobalOrder(seed, tuple(sizes))
    epochs = -(-size * count // order.samples_per_epoch)
    endless = np.concatenate(
        [order.slice(epoch, 0, order.samples_per_epoch) for epoch in range(epochs)]
    )

    taken = batches(order, order.start("data"), size, count)

    assert list(chain(*taken)) == endless[: size * count].tolist()


@given(
    sizes=shard_sizes,
    cuts=st.lists(st.integers(0, 17), max_size=6),
    seed=st.integers(0, 9),
)
def test_a_cursor_resumes_where_it_stood_however_the_samples_were_taken(sizes, cuts, seed):
    order = GlobalOrder(seed, tuple(sizes))
    cursor = order.start("data")
    for cut in cuts:
        _, _, cursor = order.take(cursor, cut)

    _, resumed, _ = order.take(Cursor.from_json(cursor.to_json()), 10)
    _, straight, _ = order.take(order.start("data"), sum(cuts) + 10)

    assert cursor.consumed == sum(cuts)
    assert resumed.tolist() == straight[sum(cuts) :].tolist()


def test_the_third_batch_of_ten_samples_wraps_into_the_second_epoch():
    order = GlobalOrder(7, (4, 6))
    first, second = order.slice(0, 0, 10).tolist(), order.slice(1, 0, 10).tolist()

    taken = batches(order, order.start("data"), 4, 5)

    assert taken[2] == first[8:] + second[:2]
    assert sorted(chain(*taken)) == sorted([*range(10), *range(10)])


def test_a_batch_larger_than_the_epoch_takes_several_epochs():
    order = GlobalOrder(7, (5,))

    epochs, ids, cursor = order.take(order.start("data"), 13)

    assert epochs.tolist() == [0] * 5 + [1] * 5 + [2] * 3
    assert sorted(ids[5:10].tolist()) == [0, 1, 2, 3, 4]
    assert (cursor.epoch, cursor.next_sample) == (2, 3)


def test_a_cursor_at_the_end_of_an_epoch_is_the_start_of_the_next():
    order = GlobalOrder(7, (5,))

    _, _, cursor = order.take(order.start("data"), 5)

    assert (cursor.epoch, cursor.next_sample) == (1, 0)
    assert order.take(cursor, 1)[1].tolist() == order.slice(1, 0, 1).tolist()


@pytest.mark.parametrize("shards", [(1000,), (100,) * 10, (1,) * 1000, (997, 1, 2)])
def test_shuffling_parts_old_neighbours_whatever_the_shards(shards):
    order = GlobalOrder(42, shards)

    ids = order.slice(0, 0, 1000)

    assert np.count_nonzero(np.abs(np.diff(ids)) == 1) < 20


def test_epochs_and_seeds_give_different_orders_and_the_same_seed_the_same():
    def first_epoch(seed: int, epoch: int = 0) -> list[int]:
        return GlobalOrder(seed, (300, 700)).slice(epoch, 0, 1000).tolist()

    assert first_epoch(1) == first_epoch(1)
    assert first_epoch(1) != first_epoch(2)
    assert first_epoch(1) != first_epoch(1, epoch=1)


def test_large_shards_are_read_one_after_another():
    order = GlobalOrder(3, (5000, 5000, 5000))
    shard_of_sample = order.slice(0, 0, 15000) // 5000

    changes = np.count_nonzero(np.diff(shard_of_sample))

    assert changes == 2
    assert {len(window) for window in islice(order.shards_from(order.start("d")), 7)} == {1}


@pytest.mark.parametrize(
    ("field", "value"), [("dataset", "other"), ("seed", 8), ("samples_per_epoch", 11)]
)
def test_a_cursor_of_other_data_is_refused_by_name(field, value):
    order = GlobalOrder(7, (4, 6))
    cursor = Cursor(**{"dataset": "data", "seed": 7, "samples_per_epoch": 10, field: value})

    with pytest.raises(CheckpointUnusableError, match=field):
        order.check(cursor, "data")


@pytest.mark.parametrize(
    "change", [{"epoch": None}, {"nextSample": 10}, {"nextSample": -1}, {"consumed": 4}]
)
def test_a_damaged_cursor_is_refused(change):
    stored = GlobalOrder(7, (10,)).start("data").advance(13).to_json() | change

    with pytest.raises(CheckpointUnusableError):
        Cursor.from_json(stored)
