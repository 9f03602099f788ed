"""How soon a change wants a plan, as every job goes through most of them; pure.

An attempt's pods come, get a node, and succeed; its Job counts them. A plan that is made while
that goes on mostly comes to nothing, so such changes may gather for a while, or are left to the
next one that matters: a pod that begins to run, fails, or tells what it waits for.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from pretrain_operator.known_job import KnownJob
from pretrain_operator.observe import PodFacts
from pretrain_operator.observed import Manifest

_SUCCESS = frozenset({"SuccessCriteriaMet", "Complete"})
"""Conditions of a Job that has succeeded: the first announces the second."""


class Weight(Enum):
    """What a change asks for: a plan, one in a while, or none of its own."""

    FULL = "full"
    LITTLE = "little"
    NONE = "none"


def weight_of_job(before: KnownJob | None, known: KnownJob) -> Weight:
    """Of a PretrainJob: of another status nobody is told, as only its operator writes that."""
    same = before is not None and _written_by_users(before) == _written_by_users(known)
    return Weight.NONE if same else Weight.FULL


def _written_by_users(known: KnownJob) -> Manifest:
    metadata: Manifest = known.raw["metadata"]
    return {name: value for name, value in metadata.items() if name != "resourceVersion"}


def weight_of_pod(_before: PodFacts | None, facts: PodFacts) -> Weight:
    """Of a pod: little where it has a node or has done its work, none before that.

    From its node on, time alone may tell more of it: that its container is not created.
    """
    pod = facts.pod
    as_usual = pod.phase in {"Pending", "Succeeded"} and not pod.exit_code
    if not as_usual or pod.reason or pod.deleting or pod.disrupted:
        return Weight.FULL
    return Weight.LITTLE if pod.node or pod.phase == "Succeeded" else Weight.NONE


def weight_of_child_job(before: Manifest | None, raw: Manifest) -> Weight:
    """Of a child Job: none where it came into being or is complete, as was announced.

    Little where it counts pods that succeeded.
    """
    decisive = _decisive(raw)
    if decisive != (_decisive(before) if before else ()):
        return Weight.FULL
    return Weight.LITTLE if before and not _holding(raw) & _SUCCESS else Weight.NONE


def _decisive(raw: Manifest) -> tuple[Any, ...]:
    holding = _holding(raw)
    if holding & _SUCCESS:
        holding = holding - _SUCCESS | {"succeeded"}
    deleted = raw["metadata"].get("deletionTimestamp")
    return tuple(part for part in (holding, raw["status"].get("failed"), deleted) if part)


def _holding(raw: Manifest) -> frozenset[str]:
    """Types of the conditions that are true."""
    conditions = raw["status"].get("conditions") or ()
    return frozenset(c["type"] for c in conditions if c["status"] == "True")
