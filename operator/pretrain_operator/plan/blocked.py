"""What a job waits for, in one sentence, from the states of its current attempt's pods."""

from __future__ import annotations

from pretrain_api.spec import PretrainJobSpec

from pretrain_operator.observed import ObservedJob, ObservedPod
from pretrain_operator.plan.attempts import waits_for_image
from pretrain_operator.plan.pod_failures import pod_name


def blocking_sentence(job: ObservedJob, spec: PretrainJobSpec) -> str:
    """Why an attempt does not run in full; empty when nothing keeps it."""
    missing = missing_pods(job)
    runs = job.stage != "train" and len(missing) < job.completions
    if runs or not missing:
        return ""
    ranks = spec.workers.processes_per_worker
    pods = {pod.index: pod for pod in job.pods if pod.phase == "Pending"}
    told = [index for index in missing if index in pods and pods[index].reason]
    index = told[0] if told else missing[0]
    subject = f"{_name(index, job, ranks)}{_others(len(missing) - 1)}"
    if told:
        return f"{subject}: {_reason(pods[index])}"
    if job.message:
        return f"{subject}: Job {job.name} has no pod for it: {job.message}"
    return f"{subject}: not running yet."


def missing_pods(job: ObservedJob) -> list[int]:
    """Indexes of an attempt that neither run nor have succeeded."""
    there = {pod.index for pod in job.pods if pod.phase in {"Running", "Succeeded"}}
    return [index for index in range(job.completions) if index not in there]


def _reason(pod: ObservedPod) -> str:
    what = "cannot get the image" if waits_for_image(pod) else "waiting"
    detail = f": {pod.message}" if pod.message else ""
    return f"{what} ({pod.reason}){detail}"


def _name(index: int, job: ObservedJob, ranks_per_pod: int) -> str:
    name = pod_name(index, job.stage, ranks_per_pod)
    return f"{name[0].upper()}{name[1:]}"


def _others(count: int) -> str:
    return f" (and {count} more)" if count else ""
