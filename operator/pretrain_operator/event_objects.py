"""The core/v1 Event that tells of something in a job's life; pure."""

from __future__ import annotations

from datetime import datetime

from pretrain_api.base import API_VERSION, KIND

from pretrain_operator.known_job import KnownJob
from pretrain_operator.observed import Event, Manifest

COMPONENT = "pretrain-operator"


def build_event(event: Event, *, about: KnownJob, now: datetime, instance: str) -> Manifest:
    """An Event of this moment; `instance` is the replica that reports it."""
    namespace, name = about.key
    moment = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "generateName": f"{name}."},
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "namespace": namespace,
            "name": name,
            "uid": about.uid,
            "resourceVersion": about.version,
        },
        "type": event.type,
        "reason": event.reason,
        "message": event.message,
        "count": 1,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": instance,
    }
