"""Why an attempt ended: one cause out of all that its lost pods say."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pretrain_api.reports import EXIT_CODES, Cause

from pretrain_operator.observed import JobCondition, ObservedJob, ObservedPod
from pretrain_operator.plan.pod_failures import Failure, Weight, classify_pod

FAILURE_CONDITIONS: frozenset[JobCondition] = frozenset({"FailureTarget", "Failed"})
"""FailureTarget counts at once: since Kubernetes 1.31 Failed waits for the last pod's end."""

SETTLING_TIME = timedelta(seconds=30)
"""How long survivors' noise waits for a peer's specific cause."""


@dataclass(frozen=True)
class Settling:
    """The attempt has failed, and may yet tell a better cause than `so_far` until then."""

    until: datetime
    so_far: Failure


def failure_of(job: ObservedJob, *, now: datetime, ranks_per_pod: int) -> Failure | Settling | None:
    """The cause of an attempt's end; None while it has not failed."""
    if not has_failed(job):
        return None
    lost = [
        classify_pod(pod, stage=job.stage, ranks_per_pod=ranks_per_pod)
        for pod in last_tries(job.pods)
        if is_lost(pod)
    ]
    if not lost:
        return _failure_without_pods(job)
    decisive = min(lost, key=decisive_order)
    until = _settled_at(job, lost)
    if decisive.weight <= Weight.DISRUPTION or _all_ended(job.pods) or until <= now:
        return decisive
    return Settling(until, so_far=decisive)


def has_failed(job: ObservedJob) -> bool:
    """Whether an attempt cannot succeed any more.

    Anywhere but in preprocessing, whose Job tries a slice again, one lost pod is enough; the
    Job's own condition would only come once its last pod has ended, if ever.
    """
    if job.condition in FAILURE_CONDITIONS or job.deleting:
        return True
    if job.stage == "preprocess":
        return False
    return job.failed > 0 or any(is_lost(pod) for pod in job.pods)


def is_lost(pod: ObservedPod) -> bool:
    """Whether a pod has failed, or will not live on."""
    if pod.phase == "Succeeded":
        return False
    return pod.phase == "Failed" or pod.deleting or pod.disrupted


def has_ended(pod: ObservedPod) -> bool:
    """Whether a pod's containers run no more."""
    return pod.phase in {"Succeeded", "Failed"}


def last_tries(pods: Sequence[ObservedPod]) -> list[ObservedPod]:
    """The last pod of every index that has not succeeded, so that mended faults do not count."""
    succeeded = {pod.index for pod in pods if pod.phase == "Succeeded"}
    last = {pod.index: pod for pod in sorted(pods, key=_started)}
    return [last[index] for index in sorted(last.keys() - succeeded)]


def gone(name: str) -> Failure:
    """The failure of an attempt whose Job is not there any more."""
    return Failure(Cause.INFRASTRUCTURE, f"Job {name} is gone, deleted from outside.")


def _started(pod: ObservedPod) -> float:
    return pod.started_at.timestamp() if pod.started_at else 0.0


def decisive_order(failure: Failure) -> tuple[int, float, int]:
    """The lowest decides: by weight, then by time; survivors weigh the same whatever they say."""
    at = failure.at.timestamp() if failure.at else float("inf")
    return min(failure.weight, Weight.NOISE), at, failure.weight


def _settled_at(job: ObservedJob, lost: Sequence[Failure]) -> datetime:
    """A failure without any time is as old as its Job."""
    times = [failure.at for failure in lost if failure.at]
    return min(times, default=job.finished_at or job.created_at) + SETTLING_TIME


def _all_ended(pods: Sequence[ObservedPod]) -> bool:
    return all(has_ended(pod) for pod in pods)


def _failure_without_pods(job: ObservedJob) -> Failure:
    """The Job's own message, which names an exit code when a podFailurePolicy ended it."""
    if job.deleting and job.condition is None:
        return gone(job.name)
    found = re.search(r"exit code (\d+)", job.message)
    code = int(found[1]) if found else None
    cause = next((c for c, value in EXIT_CODES.items() if value == code), Cause.INFRASTRUCTURE)
    detail = f": {job.message}" if job.message else "."
    sentence = f"Job {job.name} failed and its pods are gone{detail}"
    return Failure(cause, sentence, at=job.finished_at)
