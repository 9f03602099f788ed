"""`status` of a PretrainJob."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from pretrain_api.base import ApiModel
from pretrain_api.reports import CheckpointStatus, StageName, TrainingStatus


class Phase(StrEnum):
    """Where a job stands, in one word."""

    PENDING = "Pending"
    TOKENIZING = "Tokenizing"
    PREPROCESSING = "Preprocessing"
    TRAINING = "Training"
    EVALUATING = "Evaluating"
    EXPORTING = "Exporting"
    SUSPENDED = "Suspended"
    COMPLETE = "Complete"
    FAILED = "Failed"


TERMINAL_PHASES = frozenset({Phase.COMPLETE, Phase.FAILED})

ConditionType = Literal[
    "Accepted", "DataReady", "Running", "CheckpointHealthy", "Suspended", "Complete", "Failed"
]
StageState = Literal["Pending", "Running", "Complete", "Failed", "Skipped"]


class Condition(ApiModel):
    """A condition with the fields of KEP-1623."""

    type: ConditionType
    status: Literal["True", "False", "Unknown"]
    reason: Annotated[str, Field(max_length=1024)]
    message: Annotated[str, Field(max_length=32768)] = ""
    observed_generation: int = 0
    last_transition_time: AwareDatetime


class StageStatus(ApiModel):
    """One stage: its attempts, its output and how far it is."""

    name: StageName
    state: StageState = "Pending"
    attempt: int = Field(0, description="Number of the current or last attempt, from 0.")
    fingerprint: str = ""
    uri: str = ""
    cached: bool = False
    start_time: AwareDatetime | None = None
    completion_time: AwareDatetime | None = None
    succeeded: int = 0
    total: int = 1
    message: Annotated[str, Field(max_length=4096)] = ""
    retry_time: AwareDatetime | None = Field(
        None, description="When the next attempt may start, after a failure's back-off."
    )


class WorkersStatus(ApiModel):
    """The gang, as the scale subresource reads it."""

    ready: int = 0
    desired: int = 0
    selector: str = ""


class GoodputStatus(ApiModel):
    """Seconds by category over all attempts, and the useful share."""

    seconds: Annotated[dict[str, float], Field(max_length=32)] = {}
    ratio: float | None = None


class PretrainJobStatus(ApiModel):
    """All that the operator knows of a job; terminal phases never change again."""

    phase: Phase = Phase.PENDING
    observed_generation: int = 0
    conditions: Annotated[list[Condition], Field(max_length=16)] = []
    stages: Annotated[list[StageStatus], Field(max_length=8)] = []
    start_time: AwareDatetime | None = None
    completion_time: AwareDatetime | None = None
    training: TrainingStatus | None = None
    checkpoint: CheckpointStatus | None = None
    no_progress_attempts: int = Field(
        0, description="Attempts in a row that ended without a newer commit."
    )
    restarts: Annotated[dict[str, int], Field(max_length=32)] = {}
    goodput: GoodputStatus | None = None
    workers: WorkersStatus = WorkersStatus()
    metrics: Annotated[dict[str, float], Field(max_length=256)] = Field(
        {}, description="Evaluation results, such as sentiment/pretrained/accuracy/mean."
    )
    blocked_by: Annotated[str, Field(max_length=4096)] = Field(
        "", description="What the job waits for, or died of, in one sentence."
    )
    export_uri: str = ""
