"""`spec.training`: batch, length, optimizer, schedule, precision and what is logged."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, FieldName, Fraction, NonNegative, Positive, Seed


class OptimizerSpec(ApiModel):
    """AdamW unless said; biases and norms take no weight decay."""

    name: Literal["adamw", "adafactor", "lamb", "muon"] = "adamw"
    learning_rate: Annotated[float, Field(gt=0.0, le=10.0)] | None = Field(
        None, description="Peak learning rate; 1e-4 or the preset's when left out."
    )
    betas: Annotated[list[Annotated[float, Field(ge=0.0, lt=1.0)]], Field(max_length=2)] = [
        0.9,
        0.98,
    ]
    epsilon: Annotated[float, Field(gt=0.0, le=1.0)] = 1e-6
    weight_decay: Annotated[float, Field(ge=0.0, le=1.0)] = 0.01


class ScheduleSpec(ApiModel):
    """The learning rate as a function of the step alone."""

    type: Literal["linear", "cosine", "warmupStableDecay", "constant"] = "linear"
    warmup_steps: NonNegative | None = Field(None, description="6% of the steps when left out.")
    minimum_ratio: Fraction = Field(0.0, description="Last learning rate over the peak.")
    decay_steps: Positive | None = Field(None, description="Length of warmupStableDecay's decay.")


class OffloadSpec(ApiModel):
    """What ZeRO keeps in host memory."""

    optimizer: bool = False
    parameters: bool = False


class ZeroSpec(ApiModel):
    """DeepSpeed's ZeRO stage."""

    stage: Annotated[int, Field(ge=0, le=3)] = 1
    offload: OffloadSpec = OffloadSpec()


class ParallelismSpec(ApiModel):
    """Model parallelism beside data parallelism."""

    tensor: Annotated[int, Field(ge=1, le=1024)] = 1
    sequence: Annotated[int, Field(ge=1, le=1024)] = 1


class AnomaliesSpec(ApiModel):
    """What happens at non-finite values and loss spikes."""

    non_finite: Literal["skip", "fail"] = "skip"
    max_consecutive_non_finite: Annotated[int, Field(ge=1, le=10_000)] = 5
    spike: Literal["count", "skip"] = "count"
    spike_sigma: Annotated[float, Field(gt=0.0, le=100.0)] = 6.0
    spike_window: Annotated[int, Field(ge=2, le=100_000)] = 128


class TrainingEvaluationSpec(ApiModel):
    """Loss on the validation split while training; the same batches each time."""

    every_steps: Positive | None = Field(None, description="A tenth of the steps when left out.")
    max_samples: Positive = 512


class LoggingSpec(ApiModel):
    """Where figures go beside the JSON-lines log."""

    interval_steps: Positive = 10
    tensorboard: bool = True
    wandb_project: Annotated[str, Field(max_length=256)] | None = None


class HooksSpec(ApiModel):
    """Import paths (`module:attribute`) from an image of the user's own."""

    dataset: FieldName | None = None
    model: FieldName | None = None
    collate: FieldName | None = None
    loss: FieldName | None = None


class TrainingSpec(ApiModel):
    """The global batch never changes with the number of workers; accumulation is derived."""

    global_batch_size: Positive | None = Field(
        None, description="Samples of one optimizer step; 256 or the preset's when left out."
    )
    micro_batch_size: Positive | None = Field(
        None, description="Samples of one forward pass of a rank; the largest divisor up to 32."
    )
    max_steps: Positive | None = None
    epochs: Annotated[float, Field(gt=0.0, le=10_000)] | None = None
    max_tokens: Positive | None = None
    optimizer: OptimizerSpec = OptimizerSpec()
    schedule: ScheduleSpec = ScheduleSpec()
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto", description="auto: bf16 on accelerators, fp32 on CPU."
    )
    zero: ZeroSpec = ZeroSpec()
    activation_checkpointing: bool = False
    parallelism: ParallelismSpec = ParallelismSpec()
    compile: bool = False
    seed: Seed = 42
    gradient_clipping: Annotated[float, Field(ge=0.0, le=1e6)] = Field(
        1.0, description="Largest gradient norm; 0 switches clipping off."
    )
    anomalies: AnomaliesSpec = AnomaliesSpec()
    evaluation: TrainingEvaluationSpec = TrainingEvaluationSpec()
    logging: LoggingSpec = LoggingSpec()
    hooks: HooksSpec = HooksSpec()
