"""Whether a run goes on with the job of an earlier one, or is a new job; pure.

The same file in the same directory is the same job: it keeps its uid, under which its checkpoints
lie. Another name or spec is another job, which shares the storage and so the finished stages.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pretrain_api.job import PretrainJob
from pretrain_api.status import Phase, PretrainJobStatus, StageStatus
from pretrain_operator.plan.goodput import with_suspended_time

Start = Literal["new", "changed", "continued", "reopened", "complete"]


@dataclass(frozen=True)
class Continuation:
    """The job to run, and how it comes to be run."""

    job: PretrainJob
    start: Start


def continue_or_start(
    wanted: PretrainJob, saved: PretrainJob | None, *, now: datetime, new_uid: str
) -> Continuation:
    """Join what a file asks for with what an earlier run in this directory left."""
    if saved is None or not _is_same(wanted, saved):
        metadata = wanted.metadata.model_copy(
            update={"uid": new_uid, "generation": 1, "creation_timestamp": now}
        )
        fresh = wanted.model_copy(update={"metadata": metadata, "status": PretrainJobStatus()})
        return Continuation(fresh, "new" if saved is None else "changed")
    metadata = wanted.metadata.model_copy(
        update={
            "uid": saved.metadata.uid,
            "generation": saved.metadata.generation,
            "creation_timestamp": saved.metadata.creation_timestamp,
        }
    )
    same = wanted.model_copy(update={"metadata": metadata, "status": saved.status})
    if saved.status.phase == Phase.COMPLETE:
        return Continuation(same, "complete")
    if saved.status.phase == Phase.FAILED:
        return Continuation(
            same.model_copy(update={"status": reopen(saved.status, now=now)}), "reopened"
        )
    return Continuation(same, "continued")


def reopen(status: PretrainJobStatus, *, now: datetime) -> PretrainJobStatus:
    """The status of a failed job that is run again after its cause was mended.

    Budgets are full again, and no attempt's number is used twice. Every stage is looked at
    anew, as mending may have changed the data; what is committed already is found again. The
    time since the failure counts as suspended.
    """
    goodput = status.goodput
    trained = all(stage.state != "Failed" for stage in status.stages if stage.name == "train")
    if goodput is not None and goodput.time is not None and not trained:
        goodput = with_suspended_time(goodput, (now - goodput.time).total_seconds(), now)
    return PretrainJobStatus(
        observed_generation=status.observed_generation,
        conditions=[item for item in status.conditions if item.type == "Accepted"],
        stages=[_reopen_stage(stage) for stage in status.stages],
        checkpoint=status.checkpoint,
        goodput=goodput,
    )


def _reopen_stage(stage: StageStatus) -> StageStatus:
    if stage.state == "Skipped":
        return stage
    has_run = stage.start_time is not None
    return StageStatus(name=stage.name, attempt=stage.attempt + has_run, total=stage.total)


def _is_same(wanted: PretrainJob, saved: PretrainJob) -> bool:
    names = (wanted.metadata.namespace, wanted.metadata.name)
    return (
        names == (saved.metadata.namespace, saved.metadata.name)
        and wanted.spec.model_dump() == saved.spec.model_dump()
    )
