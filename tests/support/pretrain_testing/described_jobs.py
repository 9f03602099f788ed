"""What `pretrainctl describe` finds of a simulated job, and the paragraphs that it makes of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from pretrain_operator.known_job import KnownJob
from pretrain_operator.observe import PodFacts
from pretrainctl.cluster.description import paragraphs
from pretrainctl.cluster.findings import Findings, Pulse

from pretrain_testing.plan_simulator import START, Simulation, make_job

LEADING = Pulse("pretrain-system", "pretrain-operator", "replica-a", START, 15)
"""An operator that renewed its lease when the simulation began."""


def found(sim: Simulation, *, later: float = 0, **more: Any) -> Findings:
    """What is found of a simulated job, some seconds later."""
    raw = sim.job.model_dump(mode="json", by_alias=True, exclude_none=True)
    raw["metadata"]["creationTimestamp"] = START.isoformat()
    if not sim.job.status.observed_generation:
        raw.pop("status")
    return Findings(KnownJob.of(raw), now=sim.now + timedelta(seconds=later), **more)


def told(findings: Findings) -> dict[str, list[str]]:
    """The lines of each paragraph, by its title."""
    return {part.title: list(part.lines) for part in paragraphs(findings)}


def pods(*raws: dict[str, Any]) -> tuple[PodFacts, ...]:
    """What is kept of raw pods."""
    return tuple(fact for fact in map(PodFacts.of, raws) if fact is not None)


def training(**spec: Any) -> Simulation:
    """A job at step 250 of 1,000, with a checkpoint at step 200."""
    sim = Simulation(make_job(**spec))
    sim.until("train")
    sim.progress(250, committed=200)
    return sim


def event(message: str, *, at: str, **fields: Any) -> dict[str, Any]:
    """A raw warning about the job, last seen at a moment in ISO 8601."""
    about = {"kind": "PretrainJob", "name": "roberta-zh", "uid": "0"}
    return {
        "type": "Warning",
        "reason": "BackOff",
        "message": message,
        "involvedObject": about,
        "lastTimestamp": at,
        "metadata": {},
        **fields,
    }
