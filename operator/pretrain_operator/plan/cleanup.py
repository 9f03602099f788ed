"""Which children have had their day: everything that no stage needs any more."""

from __future__ import annotations

from collections.abc import Iterator

from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageName
from pretrain_api.status import Phase, PretrainJobStatus, StageStatus

from pretrain_operator.children.names import child_name
from pretrain_operator.observed import ChildRef, Observed
from pretrain_operator.plan.stages import current_stage


def unwanted_children(
    job: PretrainJob, observed: Observed, status: PretrainJobStatus
) -> tuple[ChildRef, ...]:
    """Children of failed attempts, of a suspended job, and Services that nobody needs now.

    Jobs and ConfigMaps of complete stages stay until their PretrainJob goes, for their logs.
    """
    jobs = tuple(_unwanted_jobs(observed, status))
    kept = {j.name for j in observed.jobs if ChildRef("Job", j.name) not in jobs}
    starting = _current_name(job, status)
    kept_services = {name for name in (starting,) if name}
    config_maps = (
        ChildRef("ConfigMap", name)
        for name in observed.config_maps
        if name not in kept | kept_services
    )
    services = (
        ChildRef("Service", name) for name in observed.services if name not in kept_services
    )
    return (*jobs, *services, *config_maps)


def _unwanted_jobs(observed: Observed, status: PretrainJobStatus) -> Iterator[ChildRef]:
    wanted = {(stage.name, stage.attempt) for stage in _wanted_stages(status)}
    for child in observed.jobs:
        if (child.stage, child.attempt) not in wanted and not child.deleting:
            yield ChildRef("Job", child.name)


def _wanted_stages(status: PretrainJobStatus) -> Iterator[StageStatus]:
    if status.phase is Phase.SUSPENDED:
        return
    current = current_stage(status.stages)
    for stage in status.stages:
        if stage.state == "Complete" or (stage == current and stage.state != "Failed"):
            yield stage


def _current_name(job: PretrainJob, status: PretrainJobStatus) -> str | None:
    """Name of the attempt that runs or is about to."""
    stage = current_stage(status.stages)
    if stage is None or stage.state == "Failed" or status.phase is Phase.SUSPENDED:
        return None
    return _name(job, stage.name, stage.attempt)


def _name(job: PretrainJob, stage: StageName, attempt: int) -> str:
    metadata = job.metadata
    return child_name(job=metadata.name, uid=metadata.uid, stage=stage, attempt=attempt)
