"""What a pod's init containers tell: they run one by one, and the stage's own waits for them all.

One that restarts always is a side container: what follows waits until it has started, and it runs
on beside the stage's own (core/v1 PodSpec).
"""

from __future__ import annotations

from pretrain_operator.observe.raw import Raw, entries, moment, part
from pretrain_operator.observed import RunningInit


def failed_init(spec: Raw, status: Raw) -> Raw:
    """The end of an init container that failed; the stage's own was never started then.

    A side container only begins again.
    """
    side = _side_containers(spec)
    ends = [
        part(told, "state", "terminated")
        for told in entries(status, "initContainerStatuses")
        if told.get("name") not in side
    ]
    return next((end for end in ends if end.get("exitCode")), {})


def running_init(spec: Raw, status: Raw) -> RunningInit | None:
    """The one that runs while the others wait for it; None when none does."""
    side = _side_containers(spec)
    for told in entries(status, "initContainerStatuses"):
        name, since = str(told.get("name")), moment(part(told, "state", "running").get("startedAt"))
        if since is not None and not (name in side and told.get("started")):
            return RunningInit(name, since)
    return None


def _side_containers(spec: Raw) -> set[str]:
    inits = entries(spec, "initContainers")
    return {str(c.get("name")) for c in inits if c.get("restartPolicy") == "Always"}
