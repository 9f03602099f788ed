"""Why one pod was lost: its report, container reason, exit code or signal, as cause and sentence.

Tables are data; what decides between several lost pods is the business of `plan.failures`.
"""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

from pretrain_api.reports import EXIT_CODES, Cause, StageName, StageReport

from pretrain_operator.observed import ObservedPod

SIGNAL_EXIT_BASE = 128
"""A process that a signal ended has the exit code 128 + its number (POSIX shell convention)."""

MESSAGE_LIMIT = 2048
"""Characters of a pod's own last words that are kept in a sentence."""


class Weight(IntEnum):
    """How much a lost pod's cause says about the attempt; the lowest value decides."""

    SPECIFIC = 0
    """The process, or the kubelet, named the fault itself."""

    DISRUPTION = 1
    """The cluster took the pod, or its node, away."""

    NOISE = 2
    """What survivors of a lost peer say as well; the earliest of these counts."""

    CONSEQUENCE = 3
    """The pod was told to stop, as survivors of a lost peer are."""


@dataclass(frozen=True)
class Failure:
    """Why an attempt, or one pod of it, ended.

    `retryable` is the report's own judgement; it holds for what others may mend, too, as the next
    attempt reads Secrets anew. `node` is where the pod ran that says so, empty where none does.
    """

    cause: Cause
    sentence: str
    at: datetime | None = None
    retryable: bool = True
    weight: Weight = Weight.NOISE
    node: str = ""


@dataclass(frozen=True)
class _Reason:
    cause: Cause
    weight: Weight
    text: str


_REASONS: dict[str, _Reason] = {
    "OOMKilled": _Reason(Cause.OUT_OF_MEMORY, Weight.SPECIFIC, "was killed for its memory"),
    "Evicted": _Reason(Cause.INFRASTRUCTURE, Weight.DISRUPTION, "was evicted by its node"),
    "DeletionByTaintManager": _Reason(
        Cause.INFRASTRUCTURE, Weight.DISRUPTION, "was lost with its node"
    ),
    "DeletionByPodGC": _Reason(Cause.INFRASTRUCTURE, Weight.DISRUPTION, "was lost with its node"),
    "NodeLost": _Reason(Cause.INFRASTRUCTURE, Weight.DISRUPTION, "was lost with its node"),
    "ContainerStatusUnknown": _Reason(
        Cause.INFRASTRUCTURE, Weight.DISRUPTION, "was lost by its node"
    ),
    "Terminated": _Reason(Cause.PREEMPTED, Weight.DISRUPTION, "was stopped: its node shuts down"),
    "NodeShutdown": _Reason(Cause.PREEMPTED, Weight.DISRUPTION, "was stopped: its node shuts down"),
}
"""By reason of a container (kubelet), of a pod, or of its DisruptionTarget condition."""

_OVER_LIMIT = re.compile(r"exceeds the (?:total )?limit|exceeded its local ephemeral storage limit")
"""In the kubelet's text on a pod that is over a limit of its own, and would be anywhere; a node
that is low on disk says otherwise (pkg/kubelet/eviction)."""

_CAUSES: dict[int, Cause] = {
    code: cause for cause, code in EXIT_CODES.items() if cause is not Cause.UNKNOWN
}

_SIGNALS: dict[int, tuple[Cause, str]] = {
    signal.SIGKILL: (Cause.INFRASTRUCTURE, ""),
    signal.SIGTERM: (Cause.PREEMPTED, ""),
    signal.SIGBUS: (
        Cause.OUT_OF_MEMORY,
        "; /dev/shm is usually full then: raise spec.workers.sharedMemory",
    ),
}
"""Cause and advice by signal; any other signal is a crash of unknown cause."""


def classify_pod(pod: ObservedPod, *, stage: StageName, ranks_per_pod: int = 1) -> Failure:
    """The cause of one lost pod (failed, disrupted, or being deleted), with its sentence."""
    cause, weight, text, retryable = _judge(pod)
    return Failure(
        cause=cause,
        sentence=f"{_subject(pod, stage, ranks_per_pod)} {text}"[:MESSAGE_LIMIT],
        at=pod.finished_at,
        retryable=retryable,
        weight=weight,
        node=pod.node,
    )


def pod_name(index: int, stage: StageName, ranks_per_pod: int, *, rank: int | None = None) -> str:
    """What a pod is called in sentences: its rank, its slice, or its stage."""
    if stage == "preprocess":
        return f"slice {index}"
    if stage != "train":
        return f"the {stage} stage"
    if rank is not None:
        return f"rank {rank}"
    if ranks_per_pod == 1:
        return f"rank {index}"
    first = index * ranks_per_pod
    return f"worker {index} (ranks {first} to {first + ranks_per_pod - 1})"


_Verdict = tuple[Cause, Weight, str, bool]


def _judge(pod: ObservedPod) -> _Verdict:
    """A report that names its cause wins over what the cluster saw of the container's end."""
    report = pod.report
    if report is not None and report.cause is not None and _is_specific(report.cause):
        return report.cause, Weight.SPECIFIC, _reported(report), _is_retryable(report)
    if pod.reason == "Evicted" and _OVER_LIMIT.search(pod.message):
        text = _with_detail("was evicted for using more disk than it may", pod)
        return Cause.STORAGE_UNAVAILABLE, Weight.SPECIFIC, text, False
    reason = _REASONS.get(pod.reason)
    if reason is not None:
        return reason.cause, reason.weight, _with_detail(reason.text, pod), True
    if pod.disrupted:
        return Cause.PREEMPTED, Weight.DISRUPTION, _with_detail("was preempted", pod), True
    if report is not None and report.cause is not None:
        return report.cause, _weight(report.cause), _reported(report), _is_retryable(report)
    return _by_exit(pod)


def _by_exit(pod: ObservedPod) -> _Verdict:
    number = pod.signal or _signal_of(pod.exit_code)
    if number is not None:
        return _by_signal(pod, number)
    if pod.exit_code is None and pod.phase == "Failed" and pod.reason:
        text = _with_detail(f"was rejected by its node ({pod.reason})", pod)
        return Cause.INFRASTRUCTURE, Weight.DISRUPTION, text, True
    if pod.exit_code is None:
        return Cause.PREEMPTED, Weight.CONSEQUENCE, _with_detail("was deleted", pod), True
    cause = _CAUSES.get(pod.exit_code, Cause.UNKNOWN)
    text = _with_detail(f"ended with exit code {pod.exit_code}", pod)
    return cause, Weight.SPECIFIC if _is_specific(cause) else _weight(cause), text, True


def _by_signal(pod: ObservedPod, number: int) -> _Verdict:
    cause, advice = _SIGNALS.get(number, (Cause.UNKNOWN, ""))
    text = _with_detail(f"was ended by {_signal_name(number)}{advice}", pod)
    return cause, Weight.SPECIFIC if _is_specific(cause) else _weight(cause), text, True


def _is_specific(cause: Cause) -> bool:
    return cause not in {Cause.INFRASTRUCTURE, Cause.UNKNOWN, Cause.PREEMPTED}


def _weight(cause: Cause) -> Weight:
    return Weight.CONSEQUENCE if cause is Cause.PREEMPTED else Weight.NOISE


def _subject(pod: ObservedPod, stage: StageName, ranks_per_pod: int) -> str:
    rank = pod.report.rank if pod.report else None
    name = pod_name(pod.index, stage, ranks_per_pod, rank=rank)
    place = f" on node {pod.node}" if pod.node else ""
    return f"{name[0].upper()}{name[1:]}{place}"


def _is_retryable(report: StageReport) -> bool:
    return report.retryable or report.mendable


def _reported(report: StageReport) -> str:
    cause = report.cause or Cause.UNKNOWN
    return (
        f"ended with {cause.value}: {report.message.strip()}"
        if report.message
        else (f"ended with {cause.value}")
    )


def _with_detail(text: str, pod: ObservedPod) -> str:
    detail = pod.message.strip()
    return f"{text}: {detail}" if detail else f"{text}."


def _signal_of(exit_code: int | None) -> int | None:
    if exit_code is None or not SIGNAL_EXIT_BASE < exit_code < SIGNAL_EXIT_BASE + signal.NSIG:
        return None
    return exit_code - SIGNAL_EXIT_BASE


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
