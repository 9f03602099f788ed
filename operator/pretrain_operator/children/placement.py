"""Where pods may run: priority, tolerations, node selectors and nearness of a gang."""

from __future__ import annotations

from typing import Any

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.names import attempt_selector


def pod_placement(attempt: Attempt) -> dict[str, Any]:
    """Scheduling fields of the pod; a field that is not asked for is left out."""
    scheduling = attempt.job.spec.scheduling
    fields = {
        "priorityClassName": scheduling.priority_class_name,
        "nodeSelector": scheduling.node_selector,
        "tolerations": scheduling.tolerations,
        "affinity": _nearness(attempt),
    }
    return {name: value for name, value in fields.items() if value}


def _nearness(attempt: Attempt) -> dict[str, Any]:
    """Workers of one attempt prefer one domain of the topology, such as a rack."""
    key = attempt.job.spec.scheduling.topology_key
    if key is None or not attempt.is_gang:
        return {}
    labels = attempt_selector(attempt.job, stage=attempt.stage, attempt=attempt.number)
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
