"""Where the current attempt of a stage stands, judged from its Job and pods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pretrain_api.reports import Cause, StageResult
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.status import StageStatus

from pretrain_operator.observed import JobCondition, ObservedJob, ObservedPod
from pretrain_operator.plan.decision import Turn
from pretrain_operator.plan.failures import Settling, failure_of, gone
from pretrain_operator.plan.pod_failures import Failure, pod_name

SUCCESS_CONDITIONS: frozenset[JobCondition] = frozenset({"SuccessCriteriaMet", "Complete"})
IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"}
)
"""Reasons of a container that waits for an image it does not get (kubelet)."""

IMAGE_PATIENCE = timedelta(minutes=10)
"""How long a registry may fail before the attempt gives up; a shorter outage costs nothing."""


REPORT_PATIENCE = timedelta(seconds=30)
"""How long a watch of pods may lag behind that of their Job."""

PODS_FIRST = timedelta(seconds=15)
"""How much longer a hang is waited for than the pods do, which know more of it."""


@dataclass(frozen=True)
class Absent:
    """The attempt has no Job yet."""


@dataclass(frozen=True)
class Alive:
    """The attempt's Job exists and may succeed; `checked_at` is when time may end it."""

    job: ObservedJob
    checked_at: datetime | None = None


@dataclass(frozen=True)
class Succeeded:
    """The attempt's Job is complete; the result is what its pod with index 0 reported."""

    job: ObservedJob
    result: StageResult


Outcome = Absent | Alive | Succeeded | Settling | Failure


def judge(turn: Turn, stage: StageStatus) -> Outcome:
    """Judge the current attempt; a stage that ran and has no Job any more has lost it."""
    job = turn.attempt_of(stage)
    if job is None:
        lost = gone(f"of attempt {stage.attempt} of {stage.name}")
        return lost if stage.state == "Running" else Absent()
    if job.condition in SUCCESS_CONDITIONS:
        told_at = _awaits_report(turn, job)
        return Alive(job, checked_at=told_at) if told_at else _success(job)
    ranks = turn.job.spec.workers.processes_per_worker
    failure = failure_of(job, now=turn.now, ranks_per_pod=ranks)
    return failure or _overdue(turn, job)


def waits_for_image(pod: ObservedPod) -> bool:
    """Whether a pod's image cannot be pulled, for now."""
    return pod.phase == "Pending" and pod.reason in IMAGE_REASONS


def _awaits_report(turn: Turn, job: ObservedJob) -> datetime | None:
    """Until when the end of the pod that tells the result is waited for; None when it is not.

    Jobs and pods are watched apart, and a Job may be seen complete before its pods are.
    """
    ends = [pod.phase in {"Succeeded", "Failed"} for pod in job.pods if pod.index == 0]
    until = (job.finished_at or turn.now) + REPORT_PATIENCE
    return until if ends and not any(ends) and turn.now < until else None


def _success(job: ObservedJob) -> Succeeded | Failure:
    """Later stages need the tokenizer's report; the others' outputs speak for themselves."""
    result = _result(job)
    if result is None and job.stage == "tokenizer":
        return Failure(
            Cause.INFRASTRUCTURE, f"Job {job.name} completed, but the report of its pod is gone."
        )
    return Succeeded(job, result or StageResult())


def _result(job: ObservedJob) -> StageResult | None:
    reports = [pod.report for pod in job.pods if pod.index == 0 and pod.phase == "Succeeded"]
    return next((report.result for report in reports if report and report.result), None)


def _overdue(turn: Turn, job: ObservedJob) -> Alive | Failure:
    """What only the clock can tell: an image that never comes, a step that never ends."""
    spec = turn.job.spec
    image_due = _image_due(job)
    hang_due = _hang_due(turn, job, spec)
    if image_due and image_due <= turn.now:
        return _image_failure(job, spec)
    if hang_due and hang_due <= turn.now:
        minutes = spec.failure_policy.hang.timeout_seconds / 60
        return Failure(
            Cause.HANG, f"No training step ended in {minutes:g} minutes, while all pods ran."
        )
    return Alive(job, checked_at=min(filter(None, (image_due, hang_due)), default=None))


def _image_due(job: ObservedJob) -> datetime | None:
    """Counts from when the first such pod got its node, where its image began to be pulled."""
    waiting = [pod.scheduled_at or job.created_at for pod in job.pods if waits_for_image(pod)]
    return min(waiting) + IMAGE_PATIENCE if waiting else None


def _image_failure(job: ObservedJob, spec: PretrainJobSpec) -> Failure:
    pod = next(pod for pod in job.pods if waits_for_image(pod))
    name = pod_name(pod.index, job.stage, spec.workers.processes_per_worker)
    return Failure(
        Cause.IMAGE_PULL, f"The image of {name} cannot be pulled ({pod.reason}): {pod.message}"
    )


def _hang_due(turn: Turn, job: ObservedJob, spec: PretrainJobSpec) -> datetime | None:
    """Counts from a step of this attempt; before its first, compiling or restoring may last."""
    timeout = spec.failure_policy.hang.timeout_seconds
    stepped_at = turn.observed.stepped_at
    if job.stage != "train" or stepped_at is None or timeout == 0:
        return None
    if stepped_at < job.created_at:
        return None
    return stepped_at + timedelta(seconds=timeout) + PODS_FIRST
