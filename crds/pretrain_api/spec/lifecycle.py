"""`spec.checkpoint`, `spec.failurePolicy` and `spec.scheduling`: how a job lives and survives."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, Label, ObjectName, Positive, Seconds, Uri
from pretrain_api.reports import Cause


class HostPathSpec(ApiModel):
    """A directory of the node's own."""

    path: Annotated[str, Field(max_length=4096, pattern=r"^/.+$")] = Field(
        description="It must be there on each node, and user 65532 must be able to write to it."
    )


class ClaimSpec(ApiModel):
    """A PersistentVolumeClaim of the job's namespace."""

    claim_name: ObjectName = Field(
        description="Several workers need a claim that all of them can mount (ReadWriteMany)."
    )


class LocalVolumeSpec(ApiModel):
    """A volume that outlives its pod, one of core/v1; emptyDir and ephemeral ones do not."""

    host_path: HostPathSpec | None = Field(None, description="A directory of the node.")
    persistent_volume_claim: ClaimSpec | None = Field(None, description="A claim.")


class CheckpointSpec(ApiModel):
    """When a checkpoint is saved and which are kept."""

    every_steps: Positive | None = Field(None, description="500 when both are left out.")
    every_minutes: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="Also, or only, by the clock."
    )
    keep_last: Annotated[int, Field(ge=1, le=1000)] = Field(
        2, description="Newest checkpoints to keep."
    )
    keep_every_steps: Positive | None = Field(
        None, description="Checkpoints at multiples of this are kept for good."
    )
    uri: Uri | None = Field(None, description="checkpoints/ under the storage when left out.")
    on_preemption: Literal["save", "ignore"] = Field(
        "save", description="What a worker does that is asked to stop."
    )
    local_volume: LocalVolumeSpec | None = Field(
        None,
        description="Where each rank's newest files stay on its node, before they are uploaded "
        "and for the next attempt; nothing stays when left out.",
    )


class RestartBudget(ApiModel):
    """How often one cause may restart an attempt."""

    cause: Cause = Field(description="Why an attempt ended.")
    limit: Annotated[int, Field(ge=0, le=100_000)] = Field(
        description="Restarts; 0 fails the job at the first."
    )


class HangSpec(ApiModel):
    """No step within the timeout while the pods look healthy is a hang."""

    timeout_seconds: Annotated[Seconds, Field(ge=1)] = Field(
        1800, description="Longest time without a step."
    )


class BackoffSpec(ApiModel):
    """The wait before attempt n is initial * 2^(n-1), at most the maximum."""

    initial_seconds: Seconds = Field(10, description="Wait before the first restart.")
    maximum_seconds: Seconds = Field(300, description="Longest wait.")


class QuarantineSpec(ApiModel):
    """A node that fails a rank this often is kept out, for a time and while others have room."""

    failures: Annotated[int, Field(ge=0, le=100)] = Field(
        2, description="Failures of ranks on one node that keep it out; 0 keeps none out."
    )
    duration_seconds: Seconds = Field(3600, description="How long it is kept out.")


class FailurePolicySpec(ApiModel):
    """Budgets per cause; preemption has none and uses up no other."""

    restarts: Annotated[list[RestartBudget], Field(max_length=32)] = Field(
        [], description="Budgets that differ from the built-in ones."
    )
    no_progress_restarts: Annotated[int, Field(ge=1, le=1000)] = Field(
        3, description="Attempts in a row without a newer checkpoint that fail the job."
    )
    hang: HangSpec = HangSpec()
    backoff: BackoffSpec = BackoffSpec()
    quarantine: QuarantineSpec = QuarantineSpec()
    rendezvous_timeout_seconds: Annotated[Seconds, Field(ge=1)] = Field(
        600, description="How long ranks wait for each other at the start of an attempt."
    )


class SchedulingSpec(ApiModel):
    """Queues, gangs and where pods may run."""

    queue_name: Label | None = Field(None, description="Queue that admits the job's pods.")
    gang: Literal["none", "kueue", "volcano", "native"] = Field(
        "none", description="Who starts all workers together or none of them."
    )
    priority_class_name: ObjectName | None = Field(None, description="PriorityClass of every pod.")
    topology_key: Annotated[str, Field(max_length=317)] | None = Field(
        None, description="Node label within one value of which the workers are kept."
    )
    tolerations: Annotated[list[dict[str, Any]], Field(max_length=64)] = Field(
        [], description="Tolerations of every pod (core/v1)."
    )
    node_selector: Annotated[
        dict[str, Annotated[str, Field(max_length=63)]], Field(max_length=64)
    ] = Field({}, description="Node labels that every pod asks for.")
