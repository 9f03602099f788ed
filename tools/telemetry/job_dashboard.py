"""The board of one job: how far it is, how it learns, where its time goes."""

from __future__ import annotations

from tools.telemetry.panels import (
    Dashboard,
    Mark,
    Query,
    Row,
    Variable,
    areas,
    figure,
    lines,
    word,
)
from tools.telemetry.promql import (
    growth,
    largest,
    mean,
    or_zero,
    quantile,
    rate,
    since,
    total,
)

_PHASE = Query("max by (phase) (pretrain_job_status_phase{@job}) == 1", "{{phase}}")
_DONE = Query("max(pretrain_job_step{@job}) / max(pretrain_job_max_steps{@job})")
_TRAIN, _REAL, _RESTORE = 'split="train"', 'kind="real"', 'category="restore"'
_ATTEMPT = "attempt {{attempt}}"
_STEP_SECONDS = "pretrain_step_duration_seconds"
_SLOWEST = Query(f"topk(3, {mean(_STEP_SECONDS, 'rank').expr})", "rank {{rank}}")
_NO_SUCCESS = 'code!~"2.."'

_NOW = Row(
    "Now",
    (
        word("Phase", _PHASE),
        figure("Steps done", "percentunit", _DONE),
        figure("Training time left", "s", largest("pretrain_eta_seconds")),
        figure("Training loss", "none", largest("pretrain_loss", where=_TRAIN)),
        figure("Real tokens per second", "short", rate("pretrain_tokens_total", where=_REAL)),
        figure("Goodput", "percentunit", largest("pretrain_job_goodput_ratio")),
        figure("Checkpoint's age", "s", since("pretrain_job_last_checkpoint_timestamp_seconds")),
        figure("Restarts", "none", or_zero(total("pretrain_job_restarts_total"))),
    ),
)

_LEARNING = Row(
    "Learning",
    (
        lines(
            "Loss",
            "none",
            largest("pretrain_loss", "split"),
            width=12,
            about="Nats per predicted token: mean of an interval, and of the last evaluation.",
        ),
        lines(
            "Steps",
            "none",
            largest("pretrain_target_steps", legend="target"),
            largest("pretrain_global_step", legend="done"),
            largest("pretrain_checkpoint_last_committed_step", legend="committed"),
            width=12,
        ),
        lines("Gradient norm", "none", largest("pretrain_gradient_norm", legend="norm"), width=6),
        lines("Learning rate", "sci", largest("pretrain_learning_rate", legend="rate"), width=6),
        lines(
            "Steps gone wrong",
            "none",
            growth("pretrain_optimizer_steps_skipped_total", "reason", legend="skipped {{reason}}"),
            growth("pretrain_loss_spikes_total", legend="loss spikes"),
            growth("pretrain_non_finite_total", legend="not finite"),
            width=6,
        ),
        lines(
            "Evaluation",
            "none",
            largest("pretrain_evaluation_metric", "task", "weights", "metric"),
            width=6,
            about="Of tasks: the mean over the seeds done so far.",
        ),
    ),
)

_SPEED = Row(
    "Speed",
    (
        lines("Tokens per second", "short", rate("pretrain_tokens_total", "kind")),
        lines(
            "Step duration",
            "s",
            quantile(0.5, _STEP_SECONDS, legend="median"),
            quantile(0.99, _STEP_SECONDS, legend="99th percentile"),
        ),
        lines(
            "Slowest ranks",
            "s",
            _SLOWEST,
            about="Mean step of the slowest ranks that are scraped, which is one of each pod.",
        ),
        lines(
            "Ranks that others wait for",
            "none",
            Query(f"topk(3, {largest('pretrain_straggler_ratio', 'rank').expr})", "rank {{rank}}"),
            about="A rank's own part of a step over the median of all ranks.",
        ),
        lines("Wait for data", "percentunit", rate("pretrain_data_wait_seconds_total", "rank")),
        lines("Operations per second", "flops", rate("pretrain_model_flops_total", legend="model")),
        lines(
            "Packing", "percentunit", largest("pretrain_packing_efficiency_ratio", legend="real")
        ),
    ),
)

_TIME = Row(
    "Where time goes",
    (
        areas(
            "Time by category",
            "percentunit",
            rate("pretrain_job_time_seconds_total", "category"),
            width=12,
            about="Of rank 0 in its attempts. Steps and evaluation are what training is for.",
        ),
        lines(
            "Goodput",
            "percentunit",
            largest("pretrain_job_goodput_ratio", legend="all attempts"),
            largest("pretrain_goodput_ratio", "attempt", legend=_ATTEMPT),
            width=6,
        ),
        lines(
            "Time of all attempts",
            "s",
            largest("pretrain_job_goodput_seconds_total", "category"),
            width=12,
            about="What no rank 0 was at work in is queued, suspended or lost.",
        ),
        lines("Stages", "s", largest("pretrain_job_stage_duration_seconds", "stage"), width=6),
    ),
)

_CHECKPOINTS = Row(
    "Checkpoints and recovery",
    (
        lines("Age", "s", since("pretrain_checkpoint_last_committed_timestamp_seconds"), width=6),
        lines(
            "Stall and writing",
            "s",
            mean("pretrain_checkpoint_stall_seconds", legend="training stood still"),
            mean("pretrain_checkpoint_write_seconds", legend="written beside it"),
            width=6,
        ),
        lines(
            "Bytes saved",
            "bytes",
            total("pretrain_checkpoint_bytes_total", "attempt", legend=_ATTEMPT),
            width=6,
        ),
        lines(
            "Not saved, or found damaged",
            "none",
            total("pretrain_checkpoint_failures_total", legend="not saved"),
            total("pretrain_checkpoint_skipped_total", legend="left out, as one was written"),
            total("pretrain_checkpoint_corrupt_total", legend="damaged"),
            width=6,
        ),
        lines(
            "Recovery",
            "s",
            largest("pretrain_recovery_seconds", "attempt", legend=f"{_ATTEMPT} to its first step"),
            largest(
                "pretrain_job_time_seconds_total",
                "attempt",
                where=_RESTORE,
                legend=f"{_ATTEMPT} restore",
            ),
            width=12,
        ),
        lines("Workers", "none", largest("pretrain_job_workers", "state"), width=12),
    ),
)

_STORAGE = Row(
    "Object storage",
    (
        lines("S3 requests", "reqps", rate("pretrain_s3_requests_total", "operation")),
        lines(
            "S3 answers without success",
            "reqps",
            or_zero(rate("pretrain_s3_requests_total", "code", where=_NO_SUCCESS)),
            about="404 and 412 answer a question with no.",
        ),
        lines("S3 retries", "reqps", rate("pretrain_s3_retries_total", legend="retries")),
    ),
)

_RESOURCES = Row(
    "Resources",
    (
        lines("Memory", "bytes", largest("pretrain_resident_memory_bytes", "stage", "rank")),
        lines(
            "Shared memory",
            "bytes",
            largest("pretrain_shared_memory_used_bytes", "stage", "rank"),
        ),
        lines("Open files", "none", largest("pretrain_open_file_descriptors", "stage", "rank")),
    ),
)

_SHORT_SLICES = (
    "Slices that end between two scrapes are not seen; the dataset's manifest counts all."
)

_PREPROCESSING = Row(
    "Preprocessing",
    (
        lines(
            "Documents per second",
            "cps",
            or_zero(rate("pretrain_preprocess_documents_total", legend="kept")),
            or_zero(rate("pretrain_preprocess_removed_total", "cause", legend="removed {{cause}}")),
            or_zero(rate("pretrain_preprocess_rejects_total", "cause", legend="refused {{cause}}")),
            about=_SHORT_SLICES,
        ),
        lines(
            "Tokens per second",
            "short",
            or_zero(rate("pretrain_preprocess_tokens_total", legend="encoded")),
            about=_SHORT_SLICES,
        ),
        lines(
            "Input per second",
            "Bps",
            or_zero(rate("pretrain_preprocess_bytes_total", legend="read")),
            about=_SHORT_SLICES,
        ),
    ),
)

_ACCELERATORS = Row(
    "Accelerators",
    (
        lines("MFU", "percentunit", largest("pretrain_mfu_ratio", legend="of the peak"), width=12),
        lines(
            "Peak memory of tensors",
            "bytes",
            largest("pretrain_accelerator_memory_peak_bytes", "rank"),
            width=12,
        ),
    ),
    closed=True,
)

_BEGINNINGS = Mark(
    "Attempts",
    "count by (attempt) (pretrain_global_step{@job})"
    " unless count by (attempt) (pretrain_global_step{@job} offset 1m)",
    "Training attempt {{attempt}} begins",
)

JOB = Dashboard(
    name="job",
    title="Pretrain / Job",
    about="One PretrainJob: progress, learning, speed, time, checkpoints, resources.",
    matchers='namespace="$namespace",job="$job"',
    variables=(
        Variable("namespace", "pretrain_job_info"),
        Variable("job", "pretrain_job_info", 'namespace="$namespace"'),
    ),
    marks=(_BEGINNINGS,),
    rows=(
        _NOW,
        _LEARNING,
        _SPEED,
        _TIME,
        _CHECKPOINTS,
        _STORAGE,
        _RESOURCES,
        _PREPROCESSING,
        _ACCELERATORS,
    ),
)
