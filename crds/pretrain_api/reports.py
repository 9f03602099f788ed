"""What a stage's process leaves behind: its cause of failure, its result and its progress.

A stage writes one `StageReport` as JSON into its termination message (at most 4,096 bytes) and,
while it runs, a `StageProgress`. The operator and the local backend read the same two models,
whatever the version of the image that wrote them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BeforeValidator, Field

from pretrain_api.base import Message
from pretrain_api.timesheet import TimeSheet

TERMINATION_MESSAGE_LIMIT = 4096
"""Bytes that the kubelet keeps of a termination message."""

TERMINATION_LOG_ENV = "PRETRAIN_TERMINATION_LOG"
"""Environment variable with the path of the termination message file."""

PROGRESS_FILE_ENV = "PRETRAIN_PROGRESS_FILE"
"""Environment variable with the path of the progress file, replaced atomically."""

PROGRESS_PORT_ENV = "PRETRAIN_PROGRESS_PORT"
"""Environment variable with the port at which a stage serves /progress and /metrics."""

LATE_RATIO = 1.5
"""A rank whose own part of a step takes so many times the median is late."""

LOCAL_CHECKPOINTS_ENV = "PRETRAIN_LOCAL_CHECKPOINTS"
"""Environment variable with the directory of a volume that outlives a worker's pod."""

NODE_ENV = "PRETRAIN_NODE"
"""Environment variable with the name of a worker's node."""

StageName = Literal["tokenizer", "preprocess", "train", "evaluate", "export"]
STAGES: tuple[StageName, ...] = ("tokenizer", "preprocess", "train", "evaluate", "export")


class Cause(StrEnum):
    """Why an attempt ended; each has its own budget."""

    USER_ERROR = "UserError"
    DATA_ERROR = "DataError"
    NON_FINITE = "NonFinite"
    OUT_OF_MEMORY = "OutOfMemory"
    INFRASTRUCTURE = "Infrastructure"
    PREEMPTED = "Preempted"
    IMAGE_PULL = "ImagePull"
    QUOTA = "Quota"
    ADMISSION_DENIED = "AdmissionDenied"
    STORAGE_UNAVAILABLE = "StorageUnavailable"
    CHECKPOINT_UNUSABLE = "CheckpointUnusable"
    HANG = "Hang"
    NO_PROGRESS = "NoProgress"
    UNKNOWN = "Unknown"


EXIT_CODES: dict[Cause, int] = {
    Cause.USER_ERROR: 64,
    Cause.DATA_ERROR: 65,
    Cause.STORAGE_UNAVAILABLE: 69,
    Cause.NON_FINITE: 70,
    Cause.INFRASTRUCTURE: 71,
    Cause.CHECKPOINT_UNUSABLE: 74,
    Cause.PREEMPTED: 75,
    Cause.HANG: 76,
    Cause.OUT_OF_MEMORY: 77,
    Cause.UNKNOWN: 1,
}
"""Exit code of a stage's process by cause, after sysexits.h where that has one."""


class CheckpointStatus(Message):
    """The newest committed checkpoint."""

    step: int = Field(description="Optimizer step it was saved at.")
    uri: str = Field(description="Where it lies.")
    sha256: str = Field(description="Root hash of its manifest.")
    time: AwareDatetime = Field(description="When it was committed.")


class Artifact(Message):
    """A stage's output: where it lies, or will lie, and whether it is committed already."""

    stage: StageName
    fingerprint: str
    uri: str
    cached: bool = False


def _known_stages(artifacts: Any) -> Any:
    """Leave out the artifacts of stages that a newer version has beside these."""
    if not isinstance(artifacts, list):
        return artifacts
    return [a for a in artifacts if not isinstance(a, dict) or a.get("stage") in STAGES]


def _known_cause(cause: Any) -> Any:
    """Take a cause that a newer version tells apart for one that is not known."""
    return Cause.UNKNOWN if isinstance(cause, str) and cause not in set(Cause) else cause


class StageResult(Message):
    """What a successful stage hands to the plan; of one that failed, its newest checkpoint.

    The tokenizer stage resolves the sources, so it alone can tell the fingerprints of all later
    stages and how many slices the input has.
    """

    artifacts: Annotated[list[Artifact], BeforeValidator(_known_stages)] = []
    slices: int | None = None
    counts: dict[str, int] = {}
    metrics: dict[str, float] = {}
    step: int | None = None
    checkpoint: CheckpointStatus | None = None
    time_sheet: TimeSheet | None = None
    warnings: list[str] = []


class StageReport(Message):
    """The termination message of a stage's process."""

    stage: StageName
    index: int = 0
    rank: int | None = None
    attempt: int = 0
    cause: Annotated[Cause | None, BeforeValidator(_known_cause)] = Field(
        None, description="None when the stage succeeded."
    )
    message: str = ""
    retryable: bool = Field(True, description="Whether another attempt may succeed by itself.")
    mendable: bool = Field(
        False, description="Whether it may once others correct what it is given, as credentials."
    )
    result: StageResult | None = None


class TrainingStatus(Message):
    """Figures of rank 0."""

    step: int = Field(0, description="Optimizer steps done.")
    max_steps: int = Field(0, description="Optimizer steps of the whole training.")
    epoch: Annotated[float, Field(ge=0)] = Field(0.0, description="Passes over the corpus.")
    loss: float | None = Field(None, description="Mean training loss of the last interval.")
    validation_loss: float | None = Field(None, description="Loss of the last evaluation.")
    learning_rate: float | None = Field(None, description="Learning rate of the last step.")
    gradient_norm: float | None = Field(None, description="Gradient norm before clipping.")
    tokens_per_second: float | None = Field(None, description="Real tokens, over all ranks.")
    mfu: float | None = Field(None, description="Model FLOPs utilisation, from 0 to 1.")
    eta_seconds: float | None = Field(None, description="Seconds of training that remain.")
    skipped_steps: int = Field(0, description="Steps left out as non-finite or spikes.")
    slowest_rank: int | None = Field(None, description="The rank that others waited for most.")
    slowest_ratio: float | None = Field(
        None, description="What it took for its own part of a step, over the median of all ranks."
    )


class StageProgress(Message):
    """Where a running stage stands; `done` of `total` in `unit`."""

    stage: StageName
    index: int = 0
    attempt: int = 0
    done: float = 0
    total: float | None = None
    unit: str = ""
    message: str = ""
    training: TrainingStatus | None = None
    checkpoint: CheckpointStatus | None = None
    time_sheet: TimeSheet | None = None
