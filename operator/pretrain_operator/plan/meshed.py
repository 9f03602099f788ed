"""A service mesh's proxy in a gang's pods, which were labelled to have none.

It may let the ranks not find each other; nothing in the pods' states says so.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from pretrain_operator.observed import ObservedJob
from pretrain_operator.plan.decision import Turn

PATIENCE = timedelta(seconds=60)
"""How long a whole gang may run without a step before its proxies are told of."""


def meshed_since(turn: Turn, job: ObservedJob) -> datetime | None:
    """When a gang's proxies are worth telling; None when it has none, or trains."""
    starts = [pod.started_at for pod in job.pods if pod.started_at]
    if job.stage != "train" or turn.observed.stepped_at is not None or not starts:
        return None
    if not any(pod.proxy for pod in job.pods):
        return None
    return max(starts) + PATIENCE


def mesh_sentence(job: ObservedJob) -> str:
    """What to do about them."""
    pod = next(pod for pod in job.pods if pod.proxy)
    return (
        f"No training step yet: pod {pod.name} has a mesh's container {pod.proxy}, though it is "
        'labelled sidecar.istio.io/inject: "false"; exempt the job\'s pods from injection, for '
        "ranks do not meet through a proxy."
    )
