"""What to do about a job that waits or has failed: a sentence for each known reason.

Reasons are those of the conditions Failed and Running, and of pods that wait; what a sentence of
`status.blockedBy` says itself is not said again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

from pretrain_api.reports import Cause
from pretrain_api.status import Phase
from pretrain_operator.children.resources import stage_resources
from pretrain_operator.plan.attempts import IMAGE_PATIENCE
from pretrain_operator.plan.blocked import INIT_CONTAINER, UNSCHEDULABLE
from pretrain_operator.plan.budgets import limit_of
from pretrain_operator.plan.conditions import find_condition
from pretrain_operator.plan.early import RETRY_ANNOTATION

from pretrainctl.cluster.findings import (
    Findings,
    SeenEvent,
    last_words,
    refused_edit,
    words_of_ended_attempt,
)

FAILED_MOUNT = "FailedMount"
"""The kubelet's event about a volume, which no field of a pod tells."""

MISSING_CLAIM = "MissingClaim"
MISSING_ACCOUNT = "MissingServiceAccount"
EDIT_REFUSED = "EditRefused"

MOUNT_RETRIES = timedelta(minutes=3)
"""A mount that fails is tried again, and told again, within about two minutes (kubelet)."""

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
    MISSING_CLAIM: (
        "Make the PersistentVolumeClaim that the sentence names, or correct its name in the pod "
        "template or in checkpoint.localVolume and apply again; the job goes on by itself."
    ),
    MISSING_ACCOUNT: (
        "Make the service account that the sentence names: kubectl -n {namespace} create "
        "serviceaccount NAME; the job goes on by itself."
    ),
    EDIT_REFUSED: (
        "Correct what was edited, or take the edit back, and apply the file again; pods that run "
        "go on meanwhile."
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
        "Check the bucket, its endpoint (spec.storage) and the Secret with its credentials."
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
    INIT_CONTAINER: (
        "See what it does: kubectl -n {namespace} logs POD -c CONTAINER, where "
        "kubectl -n {namespace} get pods -l pretrain.dev/job={name} lists the pods; the job goes "
        "on by itself once it ends."
    ),
    "CreateContainerConfigError": (
        "Make the Secret or ConfigMap, or the key in it, that the sentence names; "
        "the job goes on by itself."
    ),
}

_RESUME = """Resume it: kubectl -n {namespace} patch ptj {name} --type=merge \
-p '{{"spec":{{"suspend":false}}}}'"""
_AFRESH = (
    "make the job anew: kubectl -n {namespace} delete ptj {name}, and apply the file again; "
    "finished stages are used again."
)
_ANEW = f"Then {_AFRESH}"
_FIXED = (
    f"If spec.storage itself is wrong, which no edit can change, correct the file and {_AFRESH}"
)
_AGAIN = (
    "The next attempt begins by itself. Once the cause is mended, its wait can be cut short: "
    f'kubectl -n {{namespace}} annotate ptj {{name}} --overwrite {RETRY_ANNOTATION}="$(date)".'
)
_NOT_SEEN = (
    "See whether it runs: kubectl get deploy,pods -A -l app.kubernetes.io/component=operator. "
    "It must watch this namespace (watchNamespaces of its chart)."
)

_BY_TEXT: dict[re.Pattern[str], str] = {
    re.compile(r'persistentvolumeclaim "[^"]*" not found'): MISSING_CLAIM,
    re.compile(r"error looking up service account|serviceaccounts? \"[^\"]*\" not found"): (
        MISSING_ACCOUNT
    ),
}
"""Waits that have a reason of other things, or none, by the API server's and scheduler's words."""

_ENDED_WITH = re.compile(r"\bended with (?P<cause>[A-Z]\w+)")
_SECTIONS = {"tokenizer": "preprocess", "train": "workers", "evaluate": "evaluation"}
"""Of the spec, where they are called otherwise than the stage."""


def advice(findings: Findings) -> str:
    """What to do, empty where nothing is to be done or nothing is known."""
    return " ".join(_sentences(findings)).format(namespace=findings.namespace, name=findings.name)


def _sentences(findings: Findings) -> Iterator[str]:
    status = findings.status
    if not findings.was_seen:
        yield from [] if findings.known.is_foreign else [_NOT_SEEN]
        return
    if refused_edit(findings):
        yield BY_REASON[EDIT_REFUSED]
    if status.phase is Phase.SUSPENDED:
        yield _RESUME
    elif status.phase is Phase.FAILED:
        yield from _known(_reasons_of_failure(findings))
        yield _ANEW
    elif status.blocked_by and not refused_edit(findings):
        yield from _sentences_of_wait(findings)


def _sentences_of_wait(findings: Findings) -> Iterator[str]:
    """The sentence for the first reason that has one, and what is to be known beside it."""
    reason = next((each for each in _reasons_of_wait(findings) if each in BY_REASON), None)
    if reason is None:
        return
    yield BY_REASON[reason]
    if reason == Cause.IMAGE_PULL.value and "cannot get the image" in findings.status.blocked_by:
        yield _limits_of_images(findings)
    if reason == UNSCHEDULABLE:
        yield from _asked(findings)
    if reason in {Cause.ADMISSION_DENIED.value, Cause.STORAGE_UNAVAILABLE.value}:
        yield _FIXED
    if _backs_off(findings):
        yield _AGAIN


def _limits_of_images(findings: Findings) -> str:
    minutes = IMAGE_PATIENCE.total_seconds() / 60
    limit = limit_of(Cause.IMAGE_PULL, findings.failure_policy)
    return (
        f"After {minutes:g} minutes without it the attempt ends, and after {limit} restarts "
        "for that the job."
    )


def _asked(findings: Findings) -> Iterator[str]:
    """What the stage's container asks of a node, which the scheduler's sentence leaves out."""
    stage = findings.stage
    if stage is None or findings.spec is None:
        return
    requests = stage_resources(findings.spec, stage.name)["requests"]
    told = ", ".join(f"{name} {amount}" for name, amount in requests.items())
    section = _SECTIONS.get(stage.name, stage.name)
    yield f"Each pod of {stage.name} asks for {told} (spec.{section}.resources)."


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
    if running is None or running.status == "True":
        return
    if _backs_off(findings):
        yield from _causes_of_last_end(findings)
    yield from (word for text, word in _BY_TEXT.items() if text.search(findings.status.blocked_by))
    told = [fact.pod.reason for fact in findings.pods if fact.pod.phase == "Pending"]
    if findings.pods and not any(told):
        yield from (event.reason for event in findings.events if _fails_to_mount(event, findings))
    yield running.reason
    yield from told


def _fails_to_mount(event: SeenEvent, findings: Findings) -> bool:
    """Whether a volume is missing still; one that came a moment late has left an event, too."""
    is_new = event.at is not None and findings.now - event.at < MOUNT_RETRIES
    return event.reason == FAILED_MOUNT and is_new


def _backs_off(findings: Findings) -> bool:
    """Whether the next attempt waits because of how the last one ended."""
    stage = findings.stage
    return stage is not None and stage.retry_time is not None and stage.retry_time > findings.now


def _causes_of_last_end(findings: Findings) -> Iterator[str]:
    """The event has the cause, as long as there is one; the last words may."""
    stage = findings.stage
    if stage is None:
        return
    told = words_of_ended_attempt(findings.events, stage=stage.name, attempt=stage.attempt - 1)
    for text in (told, last_words(findings.status, stage)):
        found = _ENDED_WITH.search(text)
        if found is not None:
            yield found["cause"]
