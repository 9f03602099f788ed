"""Every metric family that a stage's process exports; no other module holds a metric's name.

Base units, ratios from 0 to 1, counters that end in `_total`. The labels `namespace`, `job` and
`attempt` are those of the PretrainJob, so a scraper must honour labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]
Scope = Literal["job", "rank", "process"]

SCOPE_LABELS: dict[Scope, tuple[str, ...]] = {
    "job": ("namespace", "job", "attempt"),
    "rank": ("namespace", "job", "attempt", "rank"),
    "process": ("namespace", "job", "attempt", "stage", "rank"),
}
"""Labels by whose figure a family is: the whole job's (rank 0 tells it), each rank's, or that of
any stage's process. Outside training `rank` is the pod's index."""


@dataclass(frozen=True)
class Family:
    """A metric family as a scrape shows it; `labels` come after those of its scope.

    `buckets` are a histogram's upper bounds, without infinity.
    """

    name: str
    kind: Kind
    unit: str
    help: str
    scope: Scope = "job"
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        """All labels, in their order."""
        return SCOPE_LABELS[self.scope] + self.labels


JOB_TIME = Family(
    "pretrain_job_time_seconds_total",
    "counter",
    "seconds",
    "Time of rank 0's pod by what it went into; the categories sum to the attempt's wall clock. "
    "Steps that a lost attempt had made already are recompute.",
    labels=("category",),
)
GOODPUT = Family(
    "pretrain_goodput_ratio",
    "gauge",
    "ratio",
    "Share of the attempt's time that went into steps made for the first time, and evaluation.",
)
RECOVERY = Family(
    "pretrain_recovery_seconds",
    "gauge",
    "seconds",
    "Time from the start of rank 0's pod to the end of its first step.",
)

STEP_DURATION = Family(
    "pretrain_step_duration_seconds",
    "histogram",
    "seconds",
    "Time of an optimizer step, the wait for its data included.",
    scope="rank",
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250),
)
GLOBAL_STEP = Family("pretrain_global_step", "gauge", "steps", "Optimizer steps done.")
TARGET_STEPS = Family(
    "pretrain_target_steps", "gauge", "steps", "Optimizer steps of the whole training."
)
ETA = Family("pretrain_eta_seconds", "gauge", "seconds", "Training time that remains.")
LAST_STEP = Family(
    "pretrain_last_step_timestamp_seconds",
    "gauge",
    "seconds since 1970",
    "When the last step ended.",
    scope="rank",
)

STRAGGLER = Family(
    "pretrain_straggler_ratio",
    "gauge",
    "ratio",
    "What each rank took for its own part of the steps of the last interval, over the median: the "
    "wait for data and the last forward pass, at ZeRO stage 3 the wait alone.",
    labels=("rank",),
)

TOKENS = Family(
    "pretrain_tokens_total",
    "counter",
    "tokens",
    "Tokens trained on since step 1: computed positions, real tokens, tokens with a loss.",
    labels=("kind",),
)
SAMPLES = Family("pretrain_samples_total", "counter", "samples", "Samples trained on since step 1.")
PACKING_EFFICIENCY = Family(
    "pretrain_packing_efficiency_ratio", "gauge", "ratio", "Share of positions with a real token."
)
MODEL_FLOPS = Family(
    "pretrain_model_flops_total",
    "counter",
    "operations",
    "Floating-point operations of the model in this attempt, recomputation left out.",
)
MFU = Family(
    "pretrain_mfu_ratio",
    "gauge",
    "ratio",
    "Model FLOPs utilisation in the last interval, where the device's peak is known.",
)

LOSS = Family(
    "pretrain_loss",
    "gauge",
    "nats per predicted token",
    "Mean training loss of the last interval, and loss of the last evaluation.",
    labels=("split",),
)
GRADIENT_NORM = Family(
    "pretrain_gradient_norm", "gauge", "norm", "Gradient norm of the last step, before clipping."
)
LEARNING_RATE = Family(
    "pretrain_learning_rate", "gauge", "rate", "Learning rate of the last logged step."
)
SKIPPED_STEPS = Family(
    "pretrain_optimizer_steps_skipped_total",
    "counter",
    "steps",
    "Steps left out since step 1: non-finite, a loss spike, or fp16's loss scale.",
    labels=("reason",),
)
LOSS_SPIKES = Family(
    "pretrain_loss_spikes_total", "counter", "steps", "Steps whose loss was a spike since step 1."
)
NON_FINITE = Family(
    "pretrain_non_finite_total",
    "counter",
    "steps",
    "Steps with a loss or gradient that was not finite since step 1.",
)
EVALUATION_METRIC = Family(
    "pretrain_evaluation_metric",
    "gauge",
    "of the metric",
    "Figure of a task, a mean over the seeds done so far; task validation is training's own.",
    labels=("task", "weights", "metric"),
)

CHECKPOINT_STALL = Family(
    "pretrain_checkpoint_stall_seconds",
    "histogram",
    "seconds",
    "Time that training stood still for a checkpoint.",
    buckets=(0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500),
)
CHECKPOINT_WRITE = Family(
    "pretrain_checkpoint_write_seconds",
    "histogram",
    "seconds",
    "Time of the slowest writer for a checkpoint, beside which training went on.",
    buckets=(0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500),
)
CHECKPOINT_SKIPPED = Family(
    "pretrain_checkpoint_skipped_total",
    "counter",
    "checkpoints",
    "Checkpoints of this attempt that were left out because the one before was being written.",
)
CHECKPOINT_BYTES = Family(
    "pretrain_checkpoint_bytes_total",
    "counter",
    "bytes",
    "Bytes of all ranks in the checkpoints committed by this attempt.",
)
CHECKPOINT_STEP = Family(
    "pretrain_checkpoint_last_committed_step",
    "gauge",
    "steps",
    "Step of the newest committed checkpoint.",
)
CHECKPOINT_TIME = Family(
    "pretrain_checkpoint_last_committed_timestamp_seconds",
    "gauge",
    "seconds since 1970",
    "When the newest checkpoint was committed.",
)
CHECKPOINT_FAILURES = Family(
    "pretrain_checkpoint_failures_total",
    "counter",
    "checkpoints",
    "Checkpoints of this attempt that could not be saved.",
)
CHECKPOINT_CORRUPT = Family(
    "pretrain_checkpoint_corrupt_total",
    "counter",
    "checkpoints",
    "Committed checkpoints that this attempt found damaged when it restored.",
)
RESTORE = Family(
    "pretrain_restore_seconds",
    "gauge",
    "seconds",
    "Time that restoring took in this attempt, by where most bytes came from (storage or node); "
    "there is none where training began.",
    labels=("source",),
)

DATA_WAIT = Family(
    "pretrain_data_wait_seconds_total",
    "counter",
    "seconds",
    "Time that a rank waited for its samples.",
    scope="rank",
)
S3_REQUESTS = Family(
    "pretrain_s3_requests_total",
    "counter",
    "requests",
    "Tries of S3 requests by their HTTP status, or by the error when there was no answer.",
    scope="process",
    labels=("operation", "code"),
)
S3_RETRIES = Family(
    "pretrain_s3_retries_total",
    "counter",
    "requests",
    "Tries of S3 requests beyond each one's first.",
    scope="process",
)

RESIDENT_MEMORY = Family(
    "pretrain_resident_memory_bytes",
    "gauge",
    "bytes",
    "Resident memory of the process.",
    scope="process",
)
OPEN_FILES = Family(
    "pretrain_open_file_descriptors",
    "gauge",
    "descriptors",
    "File descriptors that the process has open.",
    scope="process",
)
SHARED_MEMORY = Family(
    "pretrain_shared_memory_used_bytes",
    "gauge",
    "bytes",
    "Bytes used in the pod's /dev/shm.",
    scope="process",
)
ACCELERATOR_MEMORY = Family(
    "pretrain_accelerator_memory_peak_bytes",
    "gauge",
    "bytes",
    "Most bytes that tensors of the rank took on its device in this attempt.",
    scope="rank",
)

DOCUMENTS = Family(
    "pretrain_preprocess_documents_total", "counter", "documents", "Documents kept and encoded."
)
INPUT_BYTES = Family(
    "pretrain_preprocess_bytes_total", "counter", "bytes", "Stored bytes of the input read."
)
ENCODED_TOKENS = Family("pretrain_preprocess_tokens_total", "counter", "tokens", "Tokens encoded.")
REMOVED = Family(
    "pretrain_preprocess_removed_total",
    "counter",
    "documents",
    "Documents that cleaning removed, by cause.",
    labels=("cause",),
)
REJECTS = Family(
    "pretrain_preprocess_rejects_total",
    "counter",
    "records",
    "Records that could not be read, by cause.",
    labels=("cause",),
)

GROUPS: dict[str, tuple[Family, ...]] = {
    "Goodput": (JOB_TIME, GOODPUT, RECOVERY),
    "Steps": (STEP_DURATION, GLOBAL_STEP, TARGET_STEPS, ETA, LAST_STEP, STRAGGLER),
    "Throughput": (TOKENS, SAMPLES, PACKING_EFFICIENCY, MODEL_FLOPS, MFU),
    "Learning": (
        LOSS,
        GRADIENT_NORM,
        LEARNING_RATE,
        SKIPPED_STEPS,
        LOSS_SPIKES,
        NON_FINITE,
        EVALUATION_METRIC,
    ),
    "Checkpoints": (
        CHECKPOINT_STALL,
        CHECKPOINT_WRITE,
        CHECKPOINT_SKIPPED,
        CHECKPOINT_BYTES,
        CHECKPOINT_STEP,
        CHECKPOINT_TIME,
        CHECKPOINT_FAILURES,
        CHECKPOINT_CORRUPT,
        RESTORE,
    ),
    "Data and storage": (DATA_WAIT, S3_REQUESTS, S3_RETRIES),
    "Resources": (RESIDENT_MEMORY, OPEN_FILES, SHARED_MEMORY, ACCELERATOR_MEMORY),
    "Preprocessing": (DOCUMENTS, INPUT_BYTES, ENCODED_TOKENS, REMOVED, REJECTS),
}
"""All families, as the reference shows them."""

FAMILIES: tuple[Family, ...] = tuple(family for group in GROUPS.values() for family in group)
