"""What a fault is: a whole PretrainJob, how the cluster knows of it, what must be said of it.

The faults themselves are in `fault_waits` and `fault_ends`; what is seen of them becomes the table
in docs/failures.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pretrain_testing.cluster_signs import Sign
from pretrain_testing.fault_world import World

SECONDS = 15.0
SCHEDULER_SECONDS = 30.0
"""From the cluster's own sign to a sentence in status; that of the scheduler and of quotas."""

QUICK = {"backoff": {"initialSeconds": 2, "maximumSeconds": 10}}
"""A `failurePolicy` whose waits are short."""


@dataclass(frozen=True)
class Fault:
    """One fault.

    `told` is a pattern that the sentence must hold. `reason` is that of the condition Failed, or
    empty when the job waits and goes on once `mend` was done, or its spec edited by `edit`.
    `restarts` are those of the end. `trains` says that it needs a prepared dataset, `limited` that
    it is in the limited namespace.
    """

    name: str
    title: str
    cause: str
    follows: str
    sign: Sign
    told: str
    spec: Mapping[str, Any]
    reason: str = ""
    restarts: Mapping[str, int] = field(default_factory=dict)
    mend: Callable[[World], None] | None = None
    edit: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = SECONDS
    trains: bool = False
    limited: bool = False


def preprocess_pod(**pod: Any) -> dict[str, Any]:
    """A spec with fields of the pods of the first two stages."""
    return {"preprocess": {"podTemplate": {"spec": pod}}}


def preprocess_container(**container: Any) -> dict[str, Any]:
    """A spec with fields of their container."""
    return preprocess_pod(containers=[{"name": "main", **container}])


def budget(cause: str, limit: int) -> dict[str, Any]:
    """A `failurePolicy` with one cause's restarts."""
    return {"restarts": [{"cause": cause, "limit": limit}], **QUICK}
