"""Where pods may run: priority, tolerations, node selectors and nearness of a gang."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.names import attempt_selector

_HOSTNAME_LABEL = "kubernetes.io/hostname"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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


def away_from(nodes: Sequence[str], affinity: dict[str, Any]) -> dict[str, Any]:
    """An affinity that admits none of some nodes, beside what it demands already.

    Terms of a node selector are alternatives, so each of them gets the demand; a requirement on a
    field takes one value (core/v1 NodeSelectorTerm).
    """
    away = [{"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in nodes]
    node_affinity = affinity.get("nodeAffinity") or {}
    required = node_affinity.get(_REQUIRED) or {}
    terms = [
        {**term, "matchFields": [*(term.get("matchFields") or []), *away]}
        for term in required.get("nodeSelectorTerms") or [{}]
    ]
    selector = {**required, "nodeSelectorTerms": terms}
    return {**affinity, "nodeAffinity": {**node_affinity, _REQUIRED: selector}}


def back_to(nodes: Sequence[str], affinity: dict[str, Any]) -> dict[str, Any]:
    """An affinity that prefers some nodes, beside what it prefers already.

    It is weaker than nearness: to be far from each other costs ranks time at every step, a
    checkpoint of the node's own only some at the first. The label is the one by which the kubelet
    tells a node's name (Kubernetes: well-known labels); a node where it differs is not preferred.
    """
    node_affinity = affinity.get("nodeAffinity") or {}
    known = {"key": _HOSTNAME_LABEL, "operator": "In", "values": list(nodes)}
    term = {"weight": 50, "preference": {"matchExpressions": [known]}}
    preferred = [*(node_affinity.get(_PREFERRED) or []), term]
    return {**affinity, "nodeAffinity": {**node_affinity, _PREFERRED: preferred}}


def _nearness(attempt: Attempt) -> dict[str, Any]:
    """Workers of one attempt prefer one domain of the topology, such as a rack."""
    key = attempt.job.spec.scheduling.topology_key
    if key is None or not attempt.is_gang:
        return {}
    labels = attempt_selector(attempt.job, stage=attempt.stage, attempt=attempt.number)
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": key}
    preferred = [{"weight": 100, "podAffinityTerm": term}]
    return {"podAffinity": {_PREFERRED: preferred}}
