"""`status` of a PretrainJob."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from pretrain_api.base import Message
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


class Condition(Message):
    """A condition with the fields of KEP-1623."""

    type: ConditionType = Field(description="What it is about.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds.")
    reason: Annotated[str, Field(max_length=1024)] = Field(description="Why, in one word.")
    message: Annotated[str, Field(max_length=32768)] = Field("", description="Why, in a sentence.")
    observed_generation: int = Field(0, description="Generation of the spec it was judged by.")
    last_transition_time: AwareDatetime = Field(description="When its status last changed.")


class StageStatus(Message):
    """One stage: its attempts, its output and how far it is."""

    name: StageName = Field(description="The stage.")
    state: StageState = Field("Pending", description="Where it stands.")
    attempt: int = Field(0, description="Number of the current or last attempt, from 0.")
    fingerprint: str = Field("", description="Hash of all that decides the output.")
    uri: str = Field("", description="Where the output lies.")
    cached: bool = Field(False, description="Whether the output was there before this job.")
    start_time: AwareDatetime | None = Field(None, description="When the first attempt began.")
    completion_time: AwareDatetime | None = Field(None, description="When the stage ended.")
    succeeded: int = Field(0, description="Pods that succeeded, of the current attempt.")
    total: int = Field(1, description="Pods of an attempt.")
    message: Annotated[str, Field(max_length=4096)] = Field(
        "", description="Last word of the current or last attempt."
    )
    retry_time: AwareDatetime | None = Field(
        None, description="When the next attempt may start, after a failure's back-off."
    )


MAX_WORKER_NODES = 256
"""Nodes of workers that status names; a larger gang's others are left out."""

NodeName = Annotated[str, Field(max_length=253)]


class WorkersStatus(Message):
    """The gang, as the scale subresource reads it."""

    ready: int = Field(0, description="Worker pods that are ready.")
    desired: int = Field(0, description="Worker pods that are wanted.")
    selector: str = Field("", description="Label selector of the worker pods.")
    nodes: Annotated[list[NodeName], Field(max_length=MAX_WORKER_NODES)] = Field(
        [], description="Nodes of the newest attempt whose workers all ran; the first by name."
    )


class SuspectNode(Message):
    """A node on which ranks of this job failed through no fault of the job's own."""

    name: NodeName = Field(description="The node.")
    failures: int = Field(0, description="Attempts that it ended.")
    kept_out_until: AwareDatetime | None = Field(
        None, description="Until when new attempts avoid it; not kept out when left out."
    )
    message: Annotated[str, Field(max_length=1024)] = Field(
        "", description="What was last seen of it."
    )


class GoodputStatus(Message):
    """Seconds of training by category over all attempts, and the useful share."""

    seconds: Annotated[dict[str, float], Field(max_length=32)] = Field(
        {},
        description="Seconds by what they went into: rank 0's own, and queued, suspended or lost "
        "where no process of its was at work. They sum to the time from startTime to time.",
    )
    ratio: float | None = Field(
        None, description="Steps and evaluation over all seconds but the suspended ones."
    )
    start_time: AwareDatetime | None = Field(
        None, description="Since when training runs or waits to run."
    )
    time: AwareDatetime | None = Field(None, description="Up to when the seconds are known.")
    step: int = Field(0, description="The last step that any attempt has made.")


class PretrainJobStatus(Message):
    """All that the operator knows of a job; terminal phases never change again."""

    phase: Phase = Phase.PENDING
    stage: StageName | None = Field(
        None, description="The first stage that is not done; none when all are."
    )
    observed_generation: int = Field(0, description="Generation of the spec that was seen.")
    handled_retry: Annotated[str, Field(max_length=128)] = Field(
        "", description="Value of the annotation pretrain.dev/retry-now that was seen."
    )
    conditions: Annotated[list[Condition], Field(max_length=16)] = Field(
        [], description="What holds of the job, one entry a type."
    )
    stages: Annotated[list[StageStatus], Field(max_length=8)] = Field(
        [], description="The stages, one entry a name."
    )
    start_time: AwareDatetime | None = Field(None, description="When the first stage began.")
    completion_time: AwareDatetime | None = Field(None, description="When the job ended.")
    training: TrainingStatus | None = None
    checkpoint: CheckpointStatus | None = None
    attempt_start_step: int = Field(
        0, description="Step of the newest commit when the current training attempt began."
    )
    no_progress_attempts: int = Field(
        0, description="Restarted attempts in a row that ended without a newer commit."
    )
    suspended_seconds: int = Field(
        0, description="Time spent suspended, which is no active time for the deadline."
    )
    active_seconds: int = Field(
        0, description="Time in which pods ran, up to when they last ceased to."
    )
    restarts: Annotated[dict[str, int], Field(max_length=32)] = Field(
        {}, description="Restarts by cause."
    )
    restart_count: int = Field(0, description="Restarts of all causes together.")
    eta: Annotated[str, Field(max_length=32)] = Field(
        "", description="Training time that remains, such as 2h5m; empty when not training."
    )
    goodput: GoodputStatus | None = None
    workers: WorkersStatus = WorkersStatus()
    suspect_nodes: Annotated[list[SuspectNode], Field(max_length=64)] = Field(
        [], description="Nodes that ended attempts, the last one last."
    )
    metrics: Annotated[dict[str, float], Field(max_length=256)] = Field(
        {}, description="Evaluation results, such as sentiment/pretrained/accuracy/mean."
    )
    blocked_by: Annotated[str, Field(max_length=4096)] = Field(
        "", description="What the job waits for, or died of, in one sentence."
    )
    export_uri: str = Field("", description="Where the exported model lies.")
