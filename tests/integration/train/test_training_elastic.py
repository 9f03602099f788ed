"""A training that goes on with other numbers of ranks, against one that was left alone.

At every ZeRO stage, with real ranks that are killed at a commit. About 30 s of CPU.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pretrain_jobs.checkpoint.files import read_json
from pretrain_jobs.checkpoint.random_state import (
    capture_random_state,
    restore_random_state,
    seed_random_state,
)
from pretrain_testing.ledgers import global_batches
from pretrain_testing.ranks import values_of
from pretrain_testing.training import Bed
from pretrain_testing.training_ranks import Witness, start_training, start_with_witness
from pretrain_testing.whole_states import whole_state
from safetensors.numpy import load_file

WORLD_SIZES = (1, 2, 4, 1)
STEPS_EACH = 2
STEPS = STEPS_EACH * len(WORLD_SIZES)

TRAINING: dict[str, Any] = {
    "maxSteps": STEPS,
    "evaluation": {"everySteps": STEPS, "maxSamples": 8},
    "logging": {"intervalSteps": 1, "tensorboard": False},
}

UNEVEN = {
    "hidden_size": 20,
    "intermediate_size": 33,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
"""Sizes that 2 and 4 ranks do not divide; no dropout, whose masks are each rank's own."""

LOSS_BOUND = 1e-6
"""Relative: sums in another order differ by an fp32 rounding (1.2e-7) or so in each of 8 steps."""

WEIGHT_BOUND = 1e-4
"""Absolute: where a gradient is near zero, AdamW turns a rounding of it into more of a step."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("elastic")


@pytest.fixture(scope="module")
def undisturbed(root: Path) -> Bed:
    """One rank, stage 0, all steps in one go."""
    bed = Bed(
        root,
        name="undisturbed",
        processes=1,
        model=UNEVEN,
        training=TRAINING | {"zero": {"stage": 0}},
        checkpoint={"everySteps": STEPS_EACH, "keepLast": STEPS},
    )
    values_of(start_training(bed).results())
    return bed


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_on_1_2_4_and_1_ranks_in_turn_it_loads_every_bit_and_trains_as_if_on_one(
    undisturbed: Bed, stage: int
) -> None:
    training = TRAINING | {"zero": {"stage": stage}}
    bed = undisturbed.variant(f"elastic-{stage}", training=training)
    for attempt, world_size in enumerate(WORLD_SIZES):
        saved = bed.commits()[-1:]
        loaded = bed.directory / f"loaded-{attempt}"
        last = attempt == len(WORLD_SIZES) - 1
        gang = start_with_witness(
            replace(bed, processes=world_size), Witness(loaded, dies=not last), attempt=attempt
        )
        results = gang.results()
        for commit in saved:
            before = whole_state(commit.parent, stage=stage)
            assert before.steps[0] == attempt * STEPS_EACH
            assert whole_state(loaded, stage=stage).difference(before) == ""
            for rank in range(world_size):
                state = read_json(loaded / f"random-{rank}.json")
                assert state == random_state(rank, step=attempt * STEPS_EACH)
    values_of(results)

    assert bed.committed_steps() == [2, 4, 6, 8]
    assert global_batches(bed.ledger) == global_batches(undisturbed.ledger)
    assert losses(bed) == pytest.approx(losses(undisturbed), rel=LOSS_BOUND)
    weights = load_file(bed.model_directory / "model.safetensors")
    for name, expected in load_file(undisturbed.model_directory / "model.safetensors").items():
        np.testing.assert_allclose(weights[name], expected, rtol=0, atol=WEIGHT_BOUND)


def random_state(rank: int, *, step: int) -> dict[str, Any]:
    """What follows from the default seed; this process's own generators stay as they are."""
    own = capture_random_state()
    seed_random_state(42, rank, step=step)
    state = capture_random_state()
    restore_random_state(own)
    return state


def losses(bed: Bed) -> list[float]:
    lines = [line for line in bed.log_lines() if "loss" in line]
    assert [line["step"] for line in lines if "learningRate" in line] == list(range(1, STEPS + 1))
    return [line["loss"] for line in lines]
