"""What is kept of a pod: few fields, and its termination message parsed once.

Formats are those of core/v1 PodStatus; reasons are the kubelet's, the scheduler's and those of the
DisruptionTarget condition, quoted as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pretrain_api.reports import CheckpointStatus, StageName, StageReport
from pydantic import ValidationError

from pretrain_operator.children.names import CONTAINER
from pretrain_operator.children.pod import METRICS_PORT_NAME
from pretrain_operator.observe.identity import Identity, JobKey
from pretrain_operator.observe.init_containers import failed_init, running_init
from pretrain_operator.observe.raw import Raw, entries, find_condition, is_true, moment, part
from pretrain_operator.observed import ObservedPod, PodPhase

MESSAGE_LIMIT = 2048
"""Characters that are kept of a pod's last words, from their end."""

INDEX = "batch.kubernetes.io/job-completion-index"
CHILD_LABEL = "batch.kubernetes.io/job-name"

_PHASES: dict[str, PodPhase] = {
    "Pending": "Pending",
    "Running": "Running",
    "Succeeded": "Succeeded",
    "Failed": "Failed",
}
_PLAIN_WAITS = frozenset({"", "ContainerCreating", "PodInitializing"})
"""Reasons for waiting that every pod goes through; they say nothing."""

_PLAIN_ENDS = frozenset({"", "Completed", "Error"})
"""Reasons of an ended container that say no more than its exit code does."""

_PROXIES = frozenset({"istio-proxy", "linkerd-proxy", "kuma-sidecar", "consul-dataplane"})
"""Containers that Istio, Linkerd, Kuma and Consul inject."""

_Said = dict[str, str]


@dataclass(frozen=True, slots=True)
class PodFacts:
    """A pod as an executor keeps it; two that are equal look the same to the plan.

    `child` names the pod's Job. `ip` is empty before the pod has one, `progress_port` is 0 when
    its stage serves no progress.
    """

    key: JobKey
    job_uid: str
    child: str
    stage: StageName
    attempt: int
    created_at: datetime
    ip: str
    progress_port: int
    pod: ObservedPod

    @classmethod
    def of(cls, raw: Raw) -> PodFacts | None:
        """Read a raw pod; None when it is no child of ours."""
        identity = Identity.of(raw)
        metadata = part(raw, "metadata")
        created_at = moment(metadata.get("creationTimestamp"))
        if identity is None or created_at is None:
            return None
        return cls(
            key=identity.key,
            job_uid=identity.job_uid,
            child=str(part(metadata, "labels").get(CHILD_LABEL, "")),
            stage=identity.stage,
            attempt=identity.attempt,
            created_at=created_at,
            ip=str(part(raw, "status").get("podIP") or ""),
            progress_port=_progress_port(part(raw, "spec")),
            pod=_observed(raw),
        )

    @property
    def commit(self) -> CheckpointStatus | None:
        """The newest checkpoint, if the pod has ended and tells one."""
        result = self.pod.report.result if self.pod.report else None
        return result.checkpoint if result else None


def _observed(raw: Raw) -> ObservedPod:
    metadata, spec, status = (part(raw, name) for name in ("metadata", "spec", "status"))
    stage_state = _state(status, "containerStatuses", CONTAINER)
    stage_end = part(stage_state, "terminated")
    ended = stage_end or failed_init(spec, status)
    report = _report(ended)
    disruption = find_condition(status, "DisruptionTarget")
    scheduled = find_condition(status, "PodScheduled")
    return ObservedPod(
        name=str(metadata.get("name", "")),
        index=_index(metadata),
        phase=_phase(status, stage_end),
        exit_code=ended.get("exitCode"),
        signal=ended.get("signal"),
        node=str(spec.get("nodeName") or ""),
        report=report,
        scheduled_at=_since(scheduled) if is_true(scheduled) else None,
        started_at=moment((part(stage_state, "running") or ended).get("startedAt")),
        finished_at=moment(ended.get("finishedAt")) or _since(disruption),
        disrupted=is_true(disruption),
        deleting=bool(metadata.get("deletionTimestamp")),
        lingering=_lingering(status, ended),
        proxy=_proxy(spec),
        init=running_init(spec, status),
        **_told(spec, status, ended, reported=report is not None),
    )


def _told(spec: Raw, status: Raw, ended: Raw, *, reported: bool) -> _Said:
    """`reason` and `message`: the first that says anything, from the container to the node.

    A report says more than the termination message that it was read from.
    """
    last_words = "" if reported else str(ended.get("message") or "")
    waiting = {} if ended.get("exitCode") else _waiting(spec, status)
    scheduled = find_condition(status, "PodScheduled") or {}
    disruption = find_condition(status, "DisruptionTarget") or {}
    candidates: tuple[tuple[bool, Raw, Any], ...] = (
        (ended.get("reason", "") not in _PLAIN_ENDS, ended, last_words),
        (bool(status.get("reason")), status, status.get("message") or last_words),
        (is_true(disruption), disruption, last_words or disruption.get("message")),
        (bool(waiting), waiting, waiting.get("message")),
        (scheduled.get("status") == "False", scheduled, scheduled.get("message")),
        (True, {}, last_words),
    )
    source, message = next((source, text) for tells, source, text in candidates if tells)
    text = str(message or "").strip()
    return {"reason": str(source.get("reason") or ""), "message": text[-MESSAGE_LIMIT:]}


def _waiting(spec: Raw, status: Raw) -> Raw:
    """The waiting state of the first container that tells why it waits, the stage's own first.

    An init container keeps all others waiting, and a side container the pod from being whole; a
    text on one of them begins with its name.
    """
    for name, state in _states(status):
        waiting = part(state, "waiting")
        if waiting.get("reason", "") in _PLAIN_WAITS:
            continue
        text = _with_image(spec, name, str(waiting.get("message") or ""))
        return {**waiting, "message": text if name == CONTAINER else f"container {name}: {text}"}
    return {}


def _states(status: Raw) -> Iterator[tuple[str, Raw]]:
    """Names and states of all containers: the stage's own, then the others in their order."""
    yield CONTAINER, _state(status, "containerStatuses", CONTAINER)
    for kind in ("initContainerStatuses", "containerStatuses"):
        for told in entries(status, kind):
            if told.get("name") != CONTAINER:
                yield str(told.get("name")), part(told, "state")


def _with_image(spec: Raw, name: str, message: str) -> str:
    """A registry's text does not always name the image that it is about."""
    container = next((c for c in _containers(spec) if c.get("name") == name), {})
    image = str(container.get("image") or "")
    return message if image in message else f"{image}: {message}"


def _containers(spec: Raw) -> Iterator[Raw]:
    yield from entries(spec, "initContainers")
    yield from entries(spec, "containers")


def _state(status: Raw, statuses: str, name: str) -> Raw:
    found = next((c for c in entries(status, statuses) if c.get("name") == name), {})
    return part(found, "state")


def _phase(status: Raw, stage_end: Raw) -> PodPhase:
    """A stage whose container has failed is lost, whatever other containers still do or wait for.

    A phase that is not known any more (Unknown, of a node that is lost) was Running before.
    """
    phase = _PHASES.get(str(status.get("phase", "Pending")), "Running")
    return "Failed" if stage_end.get("exitCode") else phase


def _lingering(status: Raw, ended: Raw) -> str:
    """Other containers that keep a pod alive whose stage is done."""
    if ended.get("exitCode") != 0:
        return ""
    alive = [
        str(c.get("name"))
        for c in entries(status, "containerStatuses")
        if part(c, "state").get("running") is not None
    ]
    return ", ".join(alive)


def _proxy(spec: Raw) -> str:
    """The container that a service mesh has put into the pod, if one has."""
    names = (str(container.get("name")) for container in _containers(spec))
    return next((name for name in names if name in _PROXIES), "")


def _report(ended: Raw) -> StageReport | None:
    """The termination message, when it is a report; it may be the log's last lines instead."""
    message = str(ended.get("message") or "")
    if not message.startswith("{"):
        return None
    try:
        return StageReport.model_validate_json(message)
    except ValidationError:
        return None


def _index(metadata: Raw) -> int:
    """Since Kubernetes 1.28 a label, before that an annotation only."""
    for place in ("labels", "annotations"):
        text = str(part(metadata, place).get(INDEX, ""))
        if text.isdecimal():
            return int(text)
    return 0


def _progress_port(spec: Raw) -> int:
    ports: list[dict[str, Any]] = [
        port
        for container in entries(spec, "containers")
        if container.get("name") == CONTAINER
        for port in container.get("ports") or ()
    ]
    found = (port.get("containerPort") for port in ports if port.get("name") == METRICS_PORT_NAME)
    return int(next(found, 0) or 0)


def _since(condition: Raw | None) -> datetime | None:
    return moment((condition or {}).get("lastTransitionTime"))
