"""What a job waits for, in a word and a sentence, from the states of its current attempt's pods.

The word is remembered as the reason of Running=False: it begins an event, and it tells why the
ranks that ran gave up when a peer never came.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from pretrain_api.reports import Cause
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.status import PretrainJobStatus

from pretrain_operator.observed import ObservedJob, ObservedPod
from pretrain_operator.plan.admission import cause_of_refusal
from pretrain_operator.plan.attempts import waits_for_image
from pretrain_operator.plan.conditions import find_condition
from pretrain_operator.plan.decision import Draft, Turn
from pretrain_operator.plan.meshed import mesh_sentence, meshed_since
from pretrain_operator.plan.pod_failures import Failure, pod_name
from pretrain_operator.plan.refused import lacks_pods, with_wait_event
from pretrain_operator.plan.running import missing_pods, waits_to_begin

TOLD_MINUTES = (1, 2, 5, 10, 20, 30)
"""Of a wait in its first hour; later each hour is told."""

UNSCHEDULABLE = "Unschedulable"
"""The scheduler's reason for a pod that has no place."""

CREATION_PATIENCE = timedelta(seconds=60)
"""How long a container may take to be created before that is told."""

INIT_CONTAINER = "InitContainer"
"""Why a pod does not run whose init container takes its time."""

WAITS: dict[str, Cause] = {
    Cause.QUOTA.value: Cause.QUOTA,
    UNSCHEDULABLE: Cause.QUOTA,
    Cause.IMAGE_PULL.value: Cause.IMAGE_PULL,
    INIT_CONTAINER: Cause.INFRASTRUCTURE,
}
"""Waits for a missing pod, and the cause of an attempt whose other pods gave up meanwhile."""


@dataclass(frozen=True)
class Blockage:
    """What an attempt waits for; `told_at` is when there is more to tell.

    `begins` says that nothing is wrong: its pods are on their way.
    """

    sentence: str
    word: str = ""
    told_at: datetime | None = None
    begins: bool = False


def with_blockage(turn: Turn, draft: Draft, job: ObservedJob) -> Draft:
    """Tell what an attempt waits for, if it waits; a quota that is used up is an event, once.

    While nothing but its beginning is waited for, it is told why the attempt before ended.
    """
    found = find_blockage(job, turn.job.spec, turn.now) or _meshed(turn, job)
    if found is None:
        return draft
    if found.word == Cause.QUOTA.value:
        draft = with_wait_event(turn, draft, found.word, found.sentence)
    before = draft.stage(job.stage).message if found.begins and job.attempt > 0 else ""
    sentence = f"{found.sentence} {before}".rstrip()
    return replace(draft, blocked_by=sentence, waits_for=found.word).waking_at(found.told_at)


def with_missing_pods(status: PretrainJobStatus, failure: Failure) -> Failure:
    """Lay a failed rendezvous at the door of what kept the missing pods away."""
    running = find_condition(status, "Running")
    cause = WAITS.get(running.reason) if running else None
    if cause is None or failure.cause is not Cause.INFRASTRUCTURE:
        return failure
    return replace(failure, cause=cause, sentence=f"{status.blocked_by} {failure.sentence}")


def find_blockage(job: ObservedJob, spec: PretrainJobSpec, now: datetime) -> Blockage | None:
    """Why an attempt does not run in full; None when nothing keeps it."""
    if not waits_to_begin(job):
        return _lingering(job, spec)
    missing = missing_pods(job)
    subject = _Subject(job, spec.workers.processes_per_worker, missing)
    pods = {pod.index: pod for pod in job.pods if pod.phase == "Pending"}
    told = next((pods[index] for index in missing if index in pods and pods[index].reason), None)
    if told is not None:
        return _waiting(told, subject)
    if job.condition == "Suspended":
        detail = f": {job.message}" if job.message else "."
        return Blockage(f"Job {job.name} is suspended, as a queue does it{detail}")
    if lacks_pods(job):
        return _without_pod(job, subject, set(pods))
    return _not_running(pods.get(missing[0]), subject, now)


@dataclass(frozen=True)
class _Subject:
    """Who is missing, as the beginning of a sentence."""

    job: ObservedJob
    ranks_per_pod: int
    missing: list[int]

    def named(self, index: int) -> str:
        name = pod_name(index, self.job.stage, self.ranks_per_pod)
        more = f" (and {len(self.missing) - 1} more)" if len(self.missing) > 1 else ""
        return f"{name[0].upper()}{name[1:]}{more}"


def _waiting(pod: ObservedPod, subject: _Subject) -> Blockage:
    name, detail = subject.named(pod.index), f": {pod.message}" if pod.message else ""
    if waits_for_image(pod):
        return Blockage(f"{name}: cannot get the image{detail}", Cause.IMAGE_PULL.value)
    word = UNSCHEDULABLE if pod.reason == UNSCHEDULABLE else ""
    return Blockage(f"{name}: waiting ({pod.reason}){detail}", word)


def _without_pod(job: ObservedJob, subject: _Subject, pending: set[int]) -> Blockage:
    created = pending | {pod.index for pod in job.pods}
    index = next((i for i in subject.missing if i not in created), subject.missing[0])
    cause = cause_of_refusal(job.pods_refused)
    word = cause.value if cause is Cause.QUOTA else ""
    name = subject.named(index)
    return Blockage(f"{name}: Job {job.name} has no pod for it: {job.pods_refused}", word)


def _not_running(pod: ObservedPod | None, subject: _Subject, now: datetime) -> Blockage:
    """A container's image may be pulled all the time, which no field of a pod tells."""
    index = subject.missing[0]
    plain = f"{subject.named(index)}: not running yet."
    if pod is None or pod.scheduled_at is None:
        return Blockage(plain, begins=True)
    due = (pod.init.since if pod.init else pod.scheduled_at) + CREATION_PATIENCE
    if now < due:
        return Blockage(plain, told_at=due, begins=True)
    if pod.init is not None:
        told, told_at = spent_wait(pod.init.since, now)
        where = f"its init container {pod.init.name} on node {pod.node}"
        sentence = f"{subject.named(index)}: {where} has been running for over {told}."
        return Blockage(sentence, INIT_CONTAINER, told_at=told_at)
    sentence = (
        f"{subject.named(index)}: its container is still being created on node {pod.node}; "
        "the image is being pulled, or a volume is not there"
    )
    return Blockage(f"{sentence}.", Cause.IMAGE_PULL.value)


def spent_wait(since: datetime, now: datetime) -> tuple[str, datetime]:
    """How long a wait is by now, rounded down so that it is seldom told anew, and when it is."""
    minutes = int((now - since) / timedelta(minutes=1))
    if minutes >= 60:
        hours = minutes // 60
        return f"{hours} h", since + timedelta(hours=hours + 1)
    passed = max((step for step in TOLD_MINUTES if step <= minutes), default=0)
    following = next((step for step in TOLD_MINUTES if step > minutes), 60)
    return f"{passed} min", since + timedelta(minutes=following)


def _meshed(turn: Turn, job: ObservedJob) -> Blockage | None:
    due = meshed_since(turn, job)
    if due is None or turn.now < due:
        return None if due is None else Blockage("", told_at=due)
    return Blockage(mesh_sentence(job))


def _lingering(job: ObservedJob, spec: PretrainJobSpec) -> Blockage | None:
    """A pod whose stage is done does not end while a side container runs."""
    pod = next((pod for pod in job.pods if pod.lingering and pod.phase == "Running"), None)
    if pod is None:
        return None
    name = pod_name(pod.index, job.stage, spec.workers.processes_per_worker)
    return Blockage(
        f"The work of {name} is done, but its pod lives on with the container {pod.lingering}: "
        "a side container must end by itself, or be an init container that restarts always."
    )
