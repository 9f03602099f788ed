"""`spec.training`: batch, length, optimizer, schedule, precision and what is logged."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, FieldName, Fraction, NonNegative, Positive, Seed


class OptimizerSpec(ApiModel):
    """AdamW unless said; biases and norms take no weight decay."""

    name: Literal["adamw", "adafactor", "lamb", "muon"] = Field(
        "adamw", description="Rule by which weights are updated."
    )
    learning_rate: Annotated[float, Field(gt=0.0, le=10.0)] | None = Field(
        None, description="Peak learning rate; 1e-4 or the preset's when left out."
    )
    betas: Annotated[
        list[Annotated[float, Field(ge=0.0, lt=1.0)]], Field(min_length=2, max_length=2)
    ] = Field([0.9, 0.98], description="Decay rates of the two moments.")
    epsilon: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        1e-6, description="Added to the root of the second moment."
    )
    weight_decay: Fraction = Field(0.01, description="Decoupled weight decay.")


class ScheduleSpec(ApiModel):
    """The learning rate as a function of the step alone."""

    type: Literal["linear", "cosine", "warmupStableDecay", "constant"] = Field(
        "linear", description="How the learning rate falls after the warm-up."
    )
    warmup_steps: NonNegative | None = Field(None, description="6% of the steps when left out.")
    minimum_ratio: Fraction = Field(0.0, description="Last learning rate over the peak.")
    decay_steps: Positive | None = Field(None, description="Length of warmupStableDecay's decay.")


class OffloadSpec(ApiModel):
    """What ZeRO keeps in host memory."""

    optimizer: bool = Field(False, description="Optimizer state; at stages 2 and 3.")
    parameters: bool = Field(False, description="Parameters; at stage 3.")


class ZeroSpec(ApiModel):
    """DeepSpeed's ZeRO stage."""

    stage: Annotated[int, Field(ge=0, le=3)] = Field(
        1,
        description="What ranks share: 1 optimizer state, 2 gradients too, 3 parameters too.",
    )
    offload: OffloadSpec = OffloadSpec()


class ParallelismSpec(ApiModel):
    """Model parallelism beside data parallelism."""

    tensor: Annotated[int, Field(ge=1, le=1024)] = Field(
        1, description="Ranks over which a layer is split."
    )
    sequence: Annotated[int, Field(ge=1, le=1024)] = Field(
        1, description="Ranks over which a sample is split."
    )


class AnomaliesSpec(ApiModel):
    """What happens at non-finite values and loss spikes."""

    non_finite: Literal["skip", "fail"] = Field(
        "skip", description="Leave the step out, or end the attempt."
    )
    max_consecutive_non_finite: Annotated[int, Field(ge=1, le=10_000)] = Field(
        5, description="Skipped steps in a row that end the attempt."
    )
    spike: Literal["count", "skip"] = Field(
        "count", description="Only count a loss spike, or leave the step out too."
    )
    spike_sigma: Annotated[float, Field(gt=0.0, le=100.0)] = Field(
        6.0, description="Standard deviations above the mean that make a spike."
    )
    spike_window: Annotated[int, Field(ge=2, le=100_000)] = Field(
        128, description="Steps over which mean and deviation are taken."
    )


class TrainingEvaluationSpec(ApiModel):
    """Loss on the validation split while training; the same batches each time."""

    every_steps: Positive | None = Field(None, description="A tenth of the steps when left out.")
    max_samples: Positive = Field(512, description="Validation samples of one evaluation.")


class LoggingSpec(ApiModel):
    """Where figures go beside the JSON-lines log."""

    interval_steps: Positive = Field(10, description="Steps from one log line to the next.")
    tensorboard: bool = Field(True, description="Write TensorBoard event files.")
    wandb_project: Annotated[str, Field(max_length=256)] | None = Field(
        None, description="Weights & Biases project; none when left out."
    )


class HooksSpec(ApiModel):
    """Import paths (`module:attribute`) from an image of the user's own."""

    dataset: FieldName | None = Field(None, description="Makes the dataset.")
    model: FieldName | None = Field(None, description="Makes the model.")
    collate: FieldName | None = Field(None, description="Makes a batch of samples.")
    loss: FieldName | None = Field(None, description="Makes the loss of outputs and labels.")


class TrainingSpec(ApiModel):
    """The global batch never changes with the number of workers; accumulation is derived."""

    global_batch_size: Positive | None = Field(
        None, description="Samples of one optimizer step; 256 or the preset's when left out."
    )
    micro_batch_size: Positive | None = Field(
        None, description="Samples of one forward pass of a rank; the largest divisor up to 32."
    )
    max_steps: Positive | None = Field(
        None,
        description=(
            "Optimizer steps; 10,000 or the preset's length when epochs and maxTokens are left "
            "out too."
        ),
    )
    epochs: Annotated[float, Field(gt=0.0, le=10_000)] | None = Field(
        None, description="Passes over the corpus, instead of maxSteps."
    )
    max_tokens: Positive | None = Field(
        None, description="Tokens to train on, instead of maxSteps."
    )
    optimizer: OptimizerSpec = OptimizerSpec()
    schedule: ScheduleSpec = ScheduleSpec()
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(
        "auto", description="auto: bf16 on accelerators, fp32 on CPU."
    )
    zero: ZeroSpec = ZeroSpec()
    activation_checkpointing: bool = Field(
        False, description="Compute activations again in the backward pass, to save memory."
    )
    parallelism: ParallelismSpec = ParallelismSpec()
    compile: bool = Field(False, description="Compile the model (torch.compile).")
    seed: Seed = Field(42, description="Of the split, the order, the masks and the weights.")
    gradient_clipping: Annotated[float, Field(ge=0.0, le=1e6)] = Field(
        1.0, description="Largest gradient norm; 0 switches clipping off."
    )
    anomalies: AnomaliesSpec = AnomaliesSpec()
    evaluation: TrainingEvaluationSpec = TrainingEvaluationSpec()
    logging: LoggingSpec = LoggingSpec()
    hooks: HooksSpec = HooksSpec()
