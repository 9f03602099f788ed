"""From the specification to DeepSpeed's configuration."""

import pytest
from pretrain_api.spec.training import TrainingSpec
from pretrain_jobs.errors import UserError
from pretrain_jobs.train.data import Share
from pretrain_jobs.train.deepspeed_config import deepspeed_config

SHARE = Share(rank=0, world_size=2, global_batch=32, micro_batch=4)


def training(**fields: object) -> TrainingSpec:
    return TrainingSpec.model_validate({"precision": "fp32"} | fields)


def test_accumulation_makes_up_the_global_batch() -> None:
    config = deepspeed_config(training(), SHARE, device="cpu", parameters=1000)

    assert config["train_batch_size"] == 32
    assert config["train_micro_batch_size_per_gpu"] == 4
    assert config["gradient_accumulation_steps"] == 4


@pytest.mark.parametrize(("stage", "clipping"), [(0, 0.0), (1, 0.5), (2, 0.5), (3, 0.5)])
def test_deepspeed_clips_where_it_tells_the_norm(stage: int, clipping: float) -> None:
    spec = training(zero={"stage": stage}, gradientClipping=0.5)

    config = deepspeed_config(spec, SHARE, device="cpu", parameters=1000)

    assert config["gradient_clipping"] == clipping
    assert config["zero_optimization"]["stage"] == stage


@pytest.mark.parametrize(("parameters", "elements"), [(1, 2), (999, 1000), (1000, 1000)])
def test_a_small_model_gets_small_buffers_of_even_size(parameters: int, elements: int) -> None:
    config = deepspeed_config(training(), SHARE, device="cpu", parameters=parameters)

    assert config["zero_optimization"]["reduce_bucket_size"] == elements
    assert config["zero_optimization"]["allgather_bucket_size"] == elements


def test_bf16_is_autocast_over_fp32_weights_with_sums_in_fp32() -> None:
    config = deepspeed_config(training(precision="bf16"), SHARE, device="cpu", parameters=1)

    assert config["torch_autocast"] == {
        "enabled": True,
        "dtype": "bfloat16",
        "lower_precision_safe_modules": [],
    }
    assert "bf16" not in config


def test_fp16_on_a_cpu_is_refused_with_what_to_use() -> None:
    with pytest.raises(UserError, match=r"fp16.*use fp32 or bf16"):
        deepspeed_config(training(precision="fp16"), SHARE, device="cpu", parameters=1)


@pytest.mark.parametrize("offload", [{"optimizer": True}, {"parameters": True}])
def test_offloading_is_refused_and_not_ignored(offload: dict[str, bool]) -> None:
    spec = training(zero={"stage": 3, "offload": offload})

    with pytest.raises(UserError, match=r"training.zero.offload is not run"):
        deepspeed_config(spec, SHARE, device="cpu", parameters=1)
