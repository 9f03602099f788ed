"""Specs that can never be trained are refused, with the numbers and what would do."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_testing.specs import GPUS, found, problems


def test_the_smallest_job_has_no_problem() -> None:
    assert problems() == []


def test_a_batch_that_ranks_cannot_share_is_refused_with_the_nearest_that_they_can() -> None:
    message = found("training", "globalBatchSize", workers={"replicas": 3})
    assert message == (
        "256 is no multiple of 3 (3 replicas x 1 processes); the nearest are 255 and 258"
    )


def test_a_micro_batch_takes_part_in_the_division() -> None:
    message = found(
        "training",
        "globalBatchSize",
        workers={"replicas": 2, "processesPerWorker": 2},
        training={"globalBatchSize": 100, "microBatchSize": 10},
    )
    assert "no multiple of 40 (2 replicas x 2 processes x microBatchSize 10)" in message
    assert message.endswith("the nearest are 80 and 120")


def test_a_batch_below_one_share_is_told_the_smallest_that_works() -> None:
    training = {"globalBatchSize": 2, "microBatchSize": 4}
    assert found("training", "globalBatchSize", training=training).endswith("the nearest are 4")


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 5000), st.integers(1, 64), st.integers(1, 64))
def test_the_batch_rule_is_division_without_rest(batch: int, replicas: int, micro: int) -> None:
    training = {"globalBatchSize": batch, "microBatchSize": micro}
    refused = problems(training=training, workers={"replicas": replicas}) != []
    assert refused == (batch % (replicas * micro) != 0)


def test_fp16_on_a_cpu_is_refused_with_the_reason() -> None:
    message = found("training", "precision", training={"precision": "fp16"})
    assert message == "fp16 is not trained on CPUs by DeepSpeed; use fp32 or bf16"


@pytest.mark.parametrize("architecture", ["t5", "deberta-v2"])
def test_fp16_is_refused_where_activations_overflow_it(architecture: str) -> None:
    message = found(
        "training",
        "precision",
        model={"architecture": architecture},
        training={"precision": "fp16"},
        workers=GPUS,
    )
    assert "use bf16, or fp32 on devices without it" in message


def test_fp16_on_gpus_is_fine_for_bert_and_bf16_everywhere() -> None:
    assert problems(training={"precision": "fp16"}, workers=GPUS) == []
    assert problems(training={"precision": "bf16"}) == []


@pytest.mark.parametrize(
    ("zero", "field"),
    [
        ({"stage": 1, "offload": {"optimizer": True}}, "optimizer"),
        ({"stage": 0, "offload": {"optimizer": True}}, "optimizer"),
        ({"stage": 2, "offload": {"parameters": True}}, "parameters"),
    ],
)
def test_offload_needs_a_stage_that_shares_what_it_moves(zero: dict[str, Any], field: str) -> None:
    path = ("training", "zero", "offload", field)
    assert f"not at stage {zero['stage']}" in found(*path, training={"zero": zero})


@pytest.mark.parametrize("stage", [2, 3])
def test_the_optimizer_is_offloaded_at_stages_2_and_3(stage: int) -> None:
    zero = {"stage": stage, "offload": {"optimizer": True}}
    assert problems(training={"zero": zero}) == []


def test_flash_attention_needs_a_gpu() -> None:
    model = {"architecture": "bert", "attention": "flash_attention_2"}
    assert "needs a GPU" in found("model", "attention", model=model)
    assert problems(model=model, workers=GPUS) == []


def test_ranks_do_not_share_a_device() -> None:
    workers = {"resources": {"limits": {"amd.com/gpu": 4}}, "processesPerWorker": 8}
    message = found("workers", "processesPerWorker", workers=workers)
    assert message.startswith("8 processes would share 4 amd.com/gpu")


def test_two_lengths_are_refused() -> None:
    message = found("training", training={"epochs": 1, "maxTokens": 10})
    assert message == "has epochs and maxTokens; give one of them"


def test_a_warmup_as_long_as_training_is_refused() -> None:
    path = ("training", "schedule", "warmupSteps")
    training = {"maxSteps": 100, "schedule": {"warmupSteps": 100}}
    assert "not below the 100 steps" in found(*path, training=training)


@pytest.mark.parametrize(
    ("schedule", "field"),
    [
        ({"type": "cosine", "decaySteps": 10}, "decaySteps"),
        ({"type": "constant", "minimumRatio": 0.5}, "minimumRatio"),
    ],
)
def test_settings_that_a_schedule_would_ignore_are_refused(
    schedule: dict[str, Any], field: str
) -> None:
    assert found("training", "schedule", field, training={"schedule": schedule})


def test_a_cause_has_one_restart_budget() -> None:
    restarts = [{"cause": "Hang", "limit": 1}, {"cause": "Hang", "limit": 2}]
    paths = [problem.path for problem in problems(failurePolicy={"restarts": restarts})]
    assert paths == [("failurePolicy", "restarts", i, "cause") for i in (0, 1)]


def test_a_backoff_starts_below_its_maximum() -> None:
    policy = {"backoff": {"initialSeconds": 9, "maximumSeconds": 8}}
    assert found("failurePolicy", "backoff", "initialSeconds", failurePolicy=policy)


def test_all_problems_are_found_at_once() -> None:
    several = problems(
        training={"precision": "fp16", "epochs": 1, "maxTokens": 1},
        workers={"replicas": 3},
        tokenizer={"uri": "a", "train": {}},
    )
    assert len(several) == 4
