"""What to do about a job that waits or has failed: a sentence for each known reason.

Reasons are those of the conditions Failed and Running, and of pods that wait; what a sentence of
`status.blockedBy` says itself is not said again.
"""

from __future__ import annotations

from collections.abc import Iterator

from pretrain_api.reports import Cause
from pretrain_api.status import Phase
from pretrain_operator.plan.blocked import UNSCHEDULABLE
from pretrain_operator.plan.conditions import find_condition

from pretrainctl.cluster.findings import Findings

FAILED_MOUNT = "FailedMount"
"""The kubelet's event about a volume, which no field of a pod tells."""

BY_REASON: dict[str, str] = {
    Cause.USER_ERROR.value: "Correct what the sentence names, in the job's file or in your code.",
    Cause.DATA_ERROR.value: (
        "Look at the data that the sentence names; spec.corpus.maxRejects bounds bad records."
    ),
    Cause.NON_FINITE.value: (
        "Training diverged: a lower learning rate, a longer warm-up or bf16 instead of fp16 helps."
    ),
    Cause.OUT_OF_MEMORY.value: (
        "Lower spec.training.microBatchSize, or give the pods more memory (resources)."
    ),
    Cause.INFRASTRUCTURE.value: (
        "Look at the nodes and the network between them: kubectl describe node NODE."
    ),
    Cause.PREEMPTED.value: "It goes on by itself once there is room.",
    Cause.IMAGE_PULL.value: (
        "Check the image's name, the registry and its pull secret; once the image can be had, "
        "the job goes on by itself."
    ),
    Cause.QUOTA.value: (
        "Have the quota raised, or free some of it; the job goes on by itself: "
        "kubectl -n {namespace} describe resourcequota."
    ),
    UNSCHEDULABLE: (
        "Free nodes or add some, or ask for less; the job goes on by itself: kubectl get nodes."
    ),
    Cause.ADMISSION_DENIED.value: (
        "Correct the field in the job's file and apply it again; the job goes on by itself."
    ),
    Cause.STORAGE_UNAVAILABLE.value: (
        "Check spec.storage (bucket, endpoint) and the Secret with its credentials."
    ),
    Cause.CHECKPOINT_UNUSABLE.value: (
        "No checkpoint verifies. Restore them from a copy, or begin anew: a job that is made anew "
        "has a place of its own for checkpoints."
    ),
    Cause.HANG.value: (
        "See what every rank did last: pretrainctl logs {name} -n {namespace} --all. If steps "
        "may take this long, raise spec.failurePolicy.hang.timeoutSeconds."
    ),
    Cause.NO_PROGRESS.value: (
        "Mend what ended the attempts, or save more often (spec.checkpoint.everySteps)."
    ),
    Cause.UNKNOWN.value: "See the log: pretrainctl logs {name} -n {namespace}.",
    "DeadlineExceeded": "Raise spec.activeDeadlineSeconds, if it may take longer.",
    "PendingDeadlineExceeded": (
        "Make room in the cluster, or raise spec.pendingDeadlineSeconds, if it may wait longer."
    ),
    FAILED_MOUNT: (
        "Make the volume, Secret or ConfigMap that the event FailedMount names; the job goes on "
        "by itself."
    ),
    "CreateContainerConfigError": (
        "Make the Secret or ConfigMap, or the key in it, that the sentence names; "
        "the job goes on by itself."
    ),
}

_RESUME = """Resume it: kubectl -n {namespace} patch ptj {name} --type=merge \
-p '{{"spec":{{"suspend":false}}}}'"""
_ANEW = (
    "Then make the job anew: kubectl -n {namespace} delete ptj {name}, and apply the file again; "
    "finished stages are used again."
)
_NOT_SEEN = (
    "See whether it runs: kubectl get deploy,pods -A -l app.kubernetes.io/component=operator. "
    "It must watch this namespace (watchNamespaces of its chart)."
)


def advice(findings: Findings) -> str:
    """What to do, empty where nothing is to be done or nothing is known."""
    return " ".join(_sentences(findings)).format(namespace=findings.namespace, name=findings.name)


def _sentences(findings: Findings) -> Iterator[str]:
    status = findings.status
    if not findings.was_seen:
        yield from [] if findings.known.is_foreign else [_NOT_SEEN]
    elif status.phase is Phase.SUSPENDED:
        yield _RESUME
    elif status.phase is Phase.FAILED:
        yield from _known(_reasons_of_failure(findings))
        yield _ANEW
    elif status.blocked_by or findings.stage is not None:
        yield from _known(_reasons_of_wait(findings))


def _known(reasons: Iterator[str]) -> list[str]:
    """The sentence for the first reason that has one."""
    found = (BY_REASON[reason] for reason in reasons if reason in BY_REASON)
    return [sentence for sentence in [next(found, "")] if sentence]


def _reasons_of_failure(findings: Findings) -> Iterator[str]:
    failed = find_condition(findings.status, "Failed")
    if failed is not None and failed.status == "True":
        yield failed.reason


def _reasons_of_wait(findings: Findings) -> Iterator[str]:
    """A word of the plan's says more than a pod's reason, and an event more than silence."""
    running = find_condition(findings.status, "Running")
    if running is None or running.status == "True" or not findings.status.blocked_by:
        return
    told = [fact.pod.reason for fact in findings.pods if fact.pod.phase == "Pending"]
    if findings.pods and not any(told):
        yield from (event.reason for event in findings.events if event.reason == FAILED_MOUNT)
    yield running.reason
    yield from told
