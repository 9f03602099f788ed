"""By which sign a cluster itself knows of a fault: predicates over pods and events, as data.

Whatever a job's status says later than these is the operator's delay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pretrain_testing.cluster_watch import Version, Watched

Manifest = dict[str, Any]
MAIN = "main"


@dataclass(frozen=True)
class Sign:
    """Something of a kind of object that belongs to a job."""

    kind: str
    holds: Callable[[Manifest], bool]

    def of(self, watched: Watched, job: str, *, after: float = 0.0) -> Version | None:
        """The first version of one of the job's objects that shows it."""
        return watched.first(
            self.kind, lambda found: _owner(found) == job and self.holds(found), after=after
        )


def waiting(*reasons: str) -> Sign:
    """A container waits for one of these reasons."""
    return Sign("Pod", lambda pod: _state(pod, "waiting").get("reason") in reasons)


def unschedulable() -> Sign:
    """The scheduler found no place."""
    return Sign("Pod", lambda pod: _condition(pod, "PodScheduled").get("reason") == "Unschedulable")


def failed() -> Sign:
    """The stage's container ended badly."""
    return Sign("Pod", lambda pod: bool(_state(pod, "terminated").get("exitCode")))


def evicted() -> Sign:
    """The kubelet took the pod away."""
    return Sign("Pod", lambda pod: pod["status"].get("reason") == "Evicted")


def pod_refused() -> Sign:
    """The Job controller may not create a pod."""
    return Sign("Event", lambda _event: True)


def applied() -> Sign:
    """The job is there; nothing else ever shows that the API server refuses a child of it."""
    return Sign("PretrainJob", lambda _job: True)


def _owner(found: Manifest) -> str:
    """The PretrainJob that an object is about."""
    if found["kind"] == "Event":
        name, _, _ = str(found["involvedObject"]["name"]).rpartition("-")
        return name.rpartition("-")[0].rpartition("-")[0]
    labels = found["metadata"].get("labels") or {}
    return str(labels.get("pretrain.dev/job") or found["metadata"]["name"])


def _state(pod: Manifest, state: str) -> Manifest:
    statuses = pod["status"].get("containerStatuses") or ()
    found: Manifest = next((status for status in statuses if status["name"] == MAIN), {})
    told: Manifest = found.get("state", {}).get(state) or {}
    return told


def _condition(pod: Manifest, name: str) -> Manifest:
    conditions: list[Manifest] = pod["status"].get("conditions") or []
    return next((told for told in conditions if told["type"] == name), {})
