"""`spec.checkpoint`, `spec.failurePolicy` and `spec.scheduling`: how a job lives and survives."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, Label, Name, Positive, Seconds, Uri
from pretrain_api.reports import Cause


class CheckpointSpec(ApiModel):
    """When a checkpoint is saved and which are kept."""

    every_steps: Positive | None = Field(None, description="500 when both are left out.")
    every_minutes: Annotated[int, Field(ge=1, le=100_000)] | None = None
    keep_last: Annotated[int, Field(ge=1, le=1000)] = 2
    keep_every_steps: Positive | None = None
    uri: Uri | None = Field(None, description="checkpoints/ under the storage when left out.")
    on_preemption: Literal["save", "ignore"] = "save"


class RestartBudget(ApiModel):
    """How often one cause may restart an attempt."""

    cause: Cause
    limit: Annotated[int, Field(ge=0, le=100_000)]


class HangSpec(ApiModel):
    """No step within the timeout while the pods look healthy is a hang."""

    timeout_seconds: Seconds = 1800


class BackoffSpec(ApiModel):
    """The wait before attempt n is initial * 2^(n-1), at most the maximum."""

    initial_seconds: Seconds = 10
    maximum_seconds: Seconds = 300


class QuarantineSpec(ApiModel):
    """A node that fails a rank this often is kept out for a time."""

    failures: Annotated[int, Field(ge=1, le=100)] = 2
    duration_seconds: Seconds = 3600


class FailurePolicySpec(ApiModel):
    """Budgets per cause; preemption has none and uses up no other."""

    restarts: Annotated[list[RestartBudget], Field(max_length=32)] = []
    no_progress_restarts: Annotated[int, Field(ge=1, le=1000)] = 3
    hang: HangSpec = HangSpec()
    backoff: BackoffSpec = BackoffSpec()
    quarantine: QuarantineSpec = QuarantineSpec()
    rendezvous_timeout_seconds: Seconds = 600


class SchedulingSpec(ApiModel):
    """Queues, gangs and where pods may run."""

    queue_name: Label | None = None
    gang: Literal["none", "kueue", "volcano", "native"] = "none"
    priority_class_name: Name | None = None
    topology_key: Annotated[str, Field(max_length=317)] | None = None
    tolerations: Annotated[list[dict[str, Any]], Field(max_length=64)] = []
    node_selector: Annotated[
        dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)
    ] = {}


