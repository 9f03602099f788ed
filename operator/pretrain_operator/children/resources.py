"""Requests and limits: every container has both, so that any ResourceQuota is content."""

from __future__ import annotations

from typing import Any

from pretrain_api.reports import StageName
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.workers import QuantityMap, ResourcesSpec, WorkersSpec

from pretrain_operator.children.attempt import Attempt

GIBIBYTES_PER_RANK = 4
SIDE_CONTAINER = ResourcesSpec(
    requests={"cpu": "100m", "memory": "128Mi"}, limits={"cpu": "1", "memory": "512Mi"}
)
"""For containers that a pod template adds without resources of their own."""

_PREPARE = ResourcesSpec(
    requests={"cpu": "500m", "memory": "1Gi"}, limits={"cpu": "2", "memory": "4Gi"}
)
_FINISH = ResourcesSpec(
    requests={"cpu": "500m", "memory": "2Gi"}, limits={"cpu": "2", "memory": "8Gi"}
)


def container_resources(attempt: Attempt) -> dict[str, Any]:
    """`resources` of the container that runs the attempt's stage."""
    return stage_resources(attempt.job.spec, attempt.stage)


def stage_resources(spec: PretrainJobSpec, stage: StageName) -> dict[str, Any]:
    """`requests` and `limits` of the container that runs a stage, defaults filled in."""
    match stage:
        case "tokenizer" | "preprocess":
            return with_defaults(spec.preprocess.resources, _PREPARE)
        case "train":
            return _train(spec.workers)
        case "evaluate":
            return with_defaults(spec.evaluation.resources, _FINISH)
        case "export":
            return with_defaults(spec.export.resources, _FINISH)


def with_defaults(wanted: ResourcesSpec, default: ResourcesSpec) -> dict[str, Any]:
    """The wanted amounts; a resource named on one side only has that amount on both.

    Defaults fill in only resources that are named on neither side, so that no default limit
    ever lies under a wanted request.
    """
    named = wanted.requests.keys() | wanted.limits.keys()
    return {
        "requests": _sorted(
            {**_without(default.requests, named), **wanted.limits, **wanted.requests}
        ),
        "limits": _sorted({**_without(default.limits, named), **wanted.requests, **wanted.limits}),
    }


def _train(workers: WorkersSpec) -> dict[str, Any]:
    ranks = workers.processes_per_worker
    amounts: QuantityMap = {
        "cpu": ranks * workers.threads_per_process,
        "memory": f"{GIBIBYTES_PER_RANK * ranks}Gi",
    }
    rdma = workers.network.rdma_resources
    defaults = ResourcesSpec(requests={**amounts, **rdma}, limits={**amounts, **rdma})
    return with_defaults(workers.resources, defaults)


def _without(amounts: QuantityMap, named: set[str]) -> QuantityMap:
    return {name: amount for name, amount in amounts.items() if name not in named}


def _sorted(amounts: QuantityMap) -> dict[str, str]:
    return {name: str(amounts[name]) for name in sorted(amounts)}
