"""The engine on two ranks at every ZeRO stage: one step is one step, however it is divided.

About 30 s.
"""

import math
from pathlib import Path

import pytest
from pretrain_testing import engine_steps
from pretrain_testing.engine_steps import StepFigures
from pretrain_testing.made_datasets import make_dataset
from pretrain_testing.ranks import run_ranks, values_of

STEPS = 3


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("engine")
    make_dataset(root / "dataset")
    return root


def run(
    root: Path,
    *,
    ranks: int = 2,
    stage: int,
    micro_batch: int,
    spoil: tuple[int, int] | None = None,
    **training: object,
) -> list[list[StepFigures]]:
    spec = {"zero": {"stage": stage}, "microBatchSize": micro_batch, **training}
    values: list[list[StepFigures]] = values_of(
        run_ranks(engine_steps.run_steps, ranks, root, spec, STEPS, spoil)
    )
    return values


@pytest.fixture(scope="module")
def one_rank(dataset: Path) -> list[StepFigures]:
    """The whole global batch as one micro-batch of one rank."""
    return run(dataset, ranks=1, stage=0, micro_batch=engine_steps.GLOBAL_BATCH)[0]


@pytest.mark.parametrize(
    ("ranks", "stage", "micro_batch"),
    [(1, 0, 2), (2, 0, 4), (2, 1, 1), (2, 2, 4), (2, 3, 2)],
)
def test_loss_and_gradient_do_not_depend_on_ranks_accumulation_or_stage(
    dataset: Path, one_rank: list[StepFigures], ranks: int, stage: int, micro_batch: int
) -> None:
    for own in run(dataset, ranks=ranks, stage=stage, micro_batch=micro_batch):
        assert [step.loss for step in own] == pytest.approx(
            [step.loss for step in one_rank], rel=1e-5
        )
        assert [step.gradient_norm for step in own] == pytest.approx(
            [step.gradient_norm for step in one_rank], rel=1e-5
        )


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_a_loss_that_is_not_a_number_on_one_rank_skips_the_step_on_all(
    dataset: Path, stage: int
) -> None:
    first, second = run(dataset, stage=stage, micro_batch=2, spoil=(1, 2))

    for rank in (first, second):
        assert [step.applied for step in rank] == [True, False, True]
        assert math.isnan(rank[1].loss)
        assert not math.isfinite(rank[1].gradient_norm)
    assert first[1].weights == first[0].weights != first[2].weights
    assert [step.loss for step in first[::2]] == [step.loss for step in second[::2]]


def test_bf16_trains_by_autocast_over_fp32_weights(
    dataset: Path, one_rank: list[StepFigures]
) -> None:
    (own, _) = run(dataset, stage=1, micro_batch=2, precision="bf16")

    assert [step.loss for step in own] == pytest.approx([s.loss for s in one_rank], rel=2e-2)
    assert own[0].loss != one_rank[0].loss


def test_activation_checkpointing_changes_no_gradient(
    dataset: Path, one_rank: list[StepFigures]
) -> None:
    (own, _) = run(dataset, stage=2, micro_batch=2, activationCheckpointing=True)

    assert [step.gradient_norm for step in own] == pytest.approx(
        [step.gradient_norm for step in one_rank], rel=1e-5
    )


@pytest.mark.parametrize(("ranks", "micro_batch", "samples"), [(2, 2, 5), (2, 4, 3)])
def test_an_evaluation_is_the_same_in_all_digits_for_any_number_of_ranks(
    dataset: Path, ranks: int, micro_batch: int, samples: int
) -> None:
    (alone,) = values_of(run_ranks(engine_steps.validation_loss, 1, dataset, micro_batch, samples))

    results = values_of(
        run_ranks(engine_steps.validation_loss, ranks, dataset, micro_batch, samples)
    )

    assert results == [alone] * ranks
    assert alone.samples == samples
