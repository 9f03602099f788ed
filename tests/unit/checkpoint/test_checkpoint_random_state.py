"""The random generators of a rank: captured, restored and derived."""

import random

import numpy as np
import torch
from pretrain_jobs.checkpoint.random_state import (
    capture_random_state,
    restore_random_state,
    seed_random_state,
)


def draws() -> tuple[float, float, float]:
    """The next number of each generator."""
    return random.random(), float(np.random.random()), torch.rand(1).item()


def derived(seed: int, rank: int, step: int) -> tuple[float, float, float]:
    seed_random_state(seed, rank, step=step)
    return draws()


def test_a_captured_state_is_restored_as_it_was() -> None:
    state = capture_random_state()
    first = draws()

    restore_random_state(state)

    assert draws() == first


def test_seed_rank_and_step_decide_every_generator_and_nothing_else_does() -> None:
    first = derived(1, 2, 3)

    assert derived(1, 2, 3) == first
    others = [derived(2, 2, 3), derived(1, 3, 3), derived(1, 2, 4), derived(1, 3, 2)]
    for place in range(3):
        assert len({numbers[place] for numbers in [first, *others]}) == 5
