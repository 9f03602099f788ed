"""Objects of a namespace and events of a job: as many as should be, and none told twice."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pretrain_testing.cluster_jobs import STAGE_LABEL
from pretrain_testing.disturbed_job import INDEX_LABEL

KINDS = ("pods", "jobs", "configmaps", "services", "secrets")
"""Kinds of which a job has children, or might."""

OF_ONE_MOMENT = frozenset(
    {
        "AttemptFailed",
        "AttemptReplaced",
        "ChildMadeAgain",
        "JobFailed",
        "StageCompleted",
        "StagesReused",
        "Suspended",
    }
)
"""Reasons of events that tell of what happens once; of any other, a wait may come back."""

FAILED = "AttemptFailed"
_ATTEMPT = re.compile(r"-train-\d+")

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Child:
    """An object of a namespace; of training's, which attempt it is of is left out.

    A pod's name ends at random, so it goes by its stage and index.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def child_of(manifest: Manifest) -> Child:
    """What an object is to a comparison."""
    metadata = manifest["metadata"]
    labels: Mapping[str, str] = metadata.get("labels", {})
    if manifest["kind"] == "Pod" and STAGE_LABEL in labels:
        return Child("Pod", f"{labels[STAGE_LABEL]}/{labels.get(INDEX_LABEL, '')}")
    return Child(manifest["kind"], _ATTEMPT.sub("-train-N", metadata["name"]))


def judge_children(expected: Iterable[Child], found: Iterable[Child], *, when: str) -> list[str]:
    """A sentence for what there is more of than should be, and one for what is missing."""
    wanted, there = Counter(expected), Counter(found)
    sentences = []
    for what, difference in (("too many", there - wanted), ("missing", wanted - there)):
        if difference:
            names = ", ".join(f"{count} {child}" for child, count in difference.items())
            sentences.append(f"Objects that are {what} {when}: {names}.")
    return sentences


@dataclass(frozen=True)
class Told:
    """An event about the job."""

    reason: str
    message: str
    count: int


def told_by(event: Manifest) -> Told:
    """What an event says."""
    return Told(event["reason"], event.get("message", ""), event.get("count") or 1)


def judge_events(events: Iterable[Told], *, attempts: int, restarts: int) -> list[str]:
    """A sentence for each event that was told twice, and one where restarts were not told."""
    told: Counter[tuple[str, str]] = Counter()
    for event in events:
        told[event.reason, event.message] += event.count
    sentences = []
    for (reason, message), count in told.items():
        allowed = 1 if reason in OF_ONE_MOMENT else attempts
        if count > allowed:
            sentences.append(f"The event {reason} came {count} times: {message}")
    failed = sum(count for (reason, _), count in told.items() if reason == FAILED)
    if failed != restarts:
        sentences.append(f"{failed} events {FAILED} tell of {restarts} restarts.")
    return sentences
