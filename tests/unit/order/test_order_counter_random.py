"""Counter-based random numbers: functions of their keys, uniform, and fixed for all time."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.dataset.counter_random import draw, fold, permutation


def test_the_first_numbers_of_stream_0_are_those_of_splitmix64():
    # From the reference implementation with seed 0 (prng.di.unimi.it/splitmix64.c).
    expected = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]

    numbers = draw(np.zeros(1, np.uint64), np.arange(3))

    assert numbers.tolist() == expected


@given(ids=st.lists(st.integers(0, 2**40), min_size=1, max_size=30))
def test_a_key_does_not_depend_on_what_else_is_keyed(ids):
    together = fold(5, 2, np.array(ids))

    alone = [int(fold(5, 2, np.array([number]))[0]) for number in ids]

    assert together.tolist() == alone


def test_the_parts_of_a_key_all_count_and_so_does_their_order():
    keys = [fold(1, 2, 3), fold(2, 1, 3), fold(1, 2, 4), fold(1, 2), fold(0, 1, 2, 3)]

    assert len({int(key[0]) for key in keys}) == len(keys)


@given(size=st.integers(0, 200), seed=st.integers(0, 2**64 - 1))
def test_a_permutation_has_every_number_once(size, seed):
    assert sorted(permutation(fold(seed), size).tolist()) == list(range(size))


def test_numbers_are_uniform_in_every_bit():
    numbers = draw(fold(3, np.arange(1000))[:, None], np.arange(100)).ravel()

    shares = [np.mean((numbers >> np.uint64(bit)) & np.uint64(1)) for bit in range(64)]

    assert max(abs(share - 0.5) for share in shares) < 0.01
    assert len(np.unique(numbers)) == len(numbers)
