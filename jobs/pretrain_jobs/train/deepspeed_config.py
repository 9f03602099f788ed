"""From `spec.training` to DeepSpeed's configuration: a pure function.

Learning rate, loss scale and checkpoints are not DeepSpeed's business here.
"""

from __future__ import annotations

from typing import Any, Literal

from pretrain_api.spec.training import TrainingSpec

from pretrain_jobs.errors import UserError
from pretrain_jobs.train.data import Share

LARGEST_BUCKET = 500_000_000
"""Elements that are reduced together, DeepSpeed's default; a small model gets a small buffer.

DeepSpeed refuses odd numbers.
"""

_AUTOCAST = {"bf16": "bfloat16", "fp16": "float16"}


def deepspeed_config(
    training: TrainingSpec, share: Share, *, device: Literal["cpu", "cuda"], parameters: int
) -> dict[str, Any]:
    """The configuration for one rank's share of the global batch.

    Weights stay fp32; lower precision is torch's autocast, and gradients are summed in fp32. At
    stage 0 the engine clips by itself, since DeepSpeed would not tell the norm there.
    """
    if training.precision == "fp16" and device == "cpu":
        raise UserError(
            "spec.training.precision is fp16, which DeepSpeed does not train on CPUs; use fp32 "
            "or bf16"
        )
    stage = training.zero.stage
    config: dict[str, Any] = {
        "train_batch_size": share.global_batch,
        "train_micro_batch_size_per_gpu": share.micro_batch,
        "gradient_accumulation_steps": share.accumulation,
        "gradient_clipping": training.gradient_clipping if stage else 0.0,
        "zero_optimization": _zero(training, device=device, parameters=parameters),
        "steps_per_print": None,
    }
    if dtype := _AUTOCAST.get(training.precision):
        config["torch_autocast"] = {
            "enabled": True,
            "dtype": dtype,
            "lower_precision_safe_modules": [],
        }
    return config


def _zero(
    training: TrainingSpec, *, device: Literal["cpu", "cuda"], parameters: int
) -> dict[str, Any]:
    zero = training.zero
    if zero.offload.optimizer or zero.offload.parameters:
        raise UserError(
            "spec.training.zero.offload is not run by this version: DeepSpeed would compile its "
            "CPU optimizer at each start; leave it out, and use more ranks or a higher stage"
        )
    even = parameters + parameters % 2
    bucket = min(LARGEST_BUCKET, max(even, 2))
    return {
        "stage": zero.stage,
        "overlap_comm": device == "cuda",
        "reduce_bucket_size": bucket,
        "allgather_bucket_size": bucket,
    }
