"""Children as an API server gives them: the raw dicts that `pretrain_operator.observe` reads.

Shapes are those of a Kubernetes 1.34 cluster; a test changes what it is about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pretrain_api.reports import StageName

from pretrain_testing.plan_simulator import UID

CREATED = "2026-01-01T00:00:00Z"
STARTED = "2026-01-01T00:00:05Z"
ENDED = "2026-01-01T00:10:00Z"

Raw = dict[str, Any]


def labels(stage: StageName = "train", attempt: int = 0, uid: str = UID) -> dict[str, str]:
    """The labels that mark a child."""
    return {
        "app.kubernetes.io/managed-by": "pretrain-operator",
        "pretrain.dev/job": "roberta-zh",
        "pretrain.dev/job-uid": uid,
        "pretrain.dev/stage": stage,
        "pretrain.dev/attempt": str(attempt),
    }


def child_name(stage: StageName = "train", attempt: int = 0) -> str:
    """Name of a child Job."""
    return f"roberta-zh-0a1b2-{stage}-{attempt}"


def raw_job(
    stage: StageName = "train",
    attempt: int = 0,
    *,
    conditions: Sequence[Mapping[str, Any]] = (),
    completions: int = 2,
    uid: str = UID,
    **status: Any,
) -> Raw:
    """A child Job with its status."""
    name = child_name(stage, attempt)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-of-{name}",
            "creationTimestamp": CREATED,
            "labels": labels(stage, attempt, uid),
        },
        "spec": {"completions": completions, "parallelism": completions},
        "status": {**status, **({"conditions": list(conditions)} if conditions else {})},
    }


def condition(type_: str, status: str = "True", **fields: Any) -> Raw:
    """A condition of a Job or of a pod."""
    return {"type": type_, "status": status, "lastTransitionTime": ENDED, **fields}


def raw_pod(
    index: int = 0,
    stage: StageName = "train",
    attempt: int = 0,
    *,
    phase: str = "Running",
    state: Mapping[str, Any] | None = None,
    uid: str = UID,
    **status: Any,
) -> Raw:
    """A pod of a child Job; `state` is that of its container `main`."""
    name = child_name(stage, attempt)
    shown = {"running": {"startedAt": STARTED}} if state is None else state
    main = {"name": "main", "state": shown, "restartCount": 0}
    return {
        "metadata": {
            "name": f"{name}-{index}-x{index}y2z",
            "namespace": "team-a",
            "creationTimestamp": CREATED,
            "labels": {
                **labels(stage, attempt, uid),
                "batch.kubernetes.io/job-name": name,
                "batch.kubernetes.io/job-completion-index": str(index),
            },
        },
        "spec": {
            "nodeName": f"node-{index}",
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example/train:1",
                    "ports": [
                        {"name": "rendezvous", "containerPort": 29400},
                        {"name": "metrics", "containerPort": 9400},
                    ],
                }
            ],
        },
        "status": {
            "phase": phase,
            "podIP": f"10.0.0.{index + 1}",
            "containerStatuses": [main],
            "conditions": [condition("PodScheduled", lastTransitionTime=CREATED)],
            **status,
        },
    }


def terminated(exit_code: int, *, message: str = "", reason: str = "Error") -> Raw:
    """The state of a container that has ended."""
    return {
        "terminated": {
            "exitCode": exit_code,
            "reason": reason,
            "message": message,
            "startedAt": STARTED,
            "finishedAt": ENDED,
        }
    }


def waiting(reason: str, message: str = "") -> Raw:
    """The state of a container that has not started."""
    return {"waiting": {"reason": reason, "message": message}}


def failed_create(message: str, *, job: Raw, at: str = ENDED, **fields: Any) -> Raw:
    """The Job controller's Event about a pod that it could not create."""
    return {
        "reason": "FailedCreate",
        "type": "Warning",
        "message": message,
        "involvedObject": {
            "kind": "Job",
            "namespace": "team-a",
            "name": job["metadata"]["name"],
            "uid": job["metadata"]["uid"],
        },
        "lastTimestamp": at,
        "metadata": {"creationTimestamp": CREATED},
        **fields,
    }
