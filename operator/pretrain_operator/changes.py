"""Which changes need no plan, or not at once, as every job goes through them; pure.

An attempt's pods come, get a node, and succeed; its Job counts them. A plan that is made while
that goes on mostly comes to nothing, so such changes may gather for a while. A pod that begins to
run, fails, or tells what it waits for is something else.
"""

from __future__ import annotations

from typing import Any

from pretrain_operator.known_job import KnownJob
from pretrain_operator.observe import PodFacts
from pretrain_operator.observed import Manifest

_SUCCESS = frozenset({"SuccessCriteriaMet", "Complete"})
"""Conditions of a Job that has succeeded: the first announces the second."""


def is_change_of_status(before: KnownJob | None, known: KnownJob) -> bool:
    """Whether a PretrainJob has only another status, which nobody but its operator writes."""
    return before is not None and _written_by_users(before) == _written_by_users(known)


def _written_by_users(known: KnownJob) -> Manifest:
    metadata: Manifest = known.raw["metadata"]
    return {name: value for name, value in metadata.items() if name != "resourceVersion"}


def is_minor_change_of_pod(_before: PodFacts | None, facts: PodFacts) -> bool:
    """Whether a pod is on its way to running, or has done its work."""
    pod = facts.pod
    as_usual = pod.phase in {"Pending", "Succeeded"} and not pod.exit_code
    return as_usual and not (pod.reason or pod.deleting or pod.disrupted)


def is_minor_change_of_job(before: Manifest | None, raw: Manifest) -> bool:
    """Whether a child Job only came into being, counted pods that succeeded, or is complete too."""
    if before is None:
        return not _decisive(raw)
    return bool(_decisive(before) == _decisive(raw))


def _decisive(raw: Manifest) -> tuple[Any, ...]:
    status = raw["status"]
    holding = {c["type"] for c in status.get("conditions") or () if c["status"] == "True"}
    if holding & _SUCCESS:
        holding = holding - _SUCCESS | {"succeeded"}
    deleted = raw["metadata"].get("deletionTimestamp")
    return tuple(part for part in (frozenset(holding), status.get("failed"), deleted) if part)
