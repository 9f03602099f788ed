"""From the SIGKILL of a worker to the first new step, by phase, on the real cluster of the bed.

A job of two workers on two nodes trains a tiny model, so that what is measured is the way back and
not the model; imports of torch, the start of containers and the machine's load are told apart.
"""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable
from typing import Any

from bed.breakage import signal_pod
from bed.cluster import Bed
from bed.fixtures import bed_for_session
from bed.namespaces import passing_namespace
from pretrain_testing.cluster_jobs import STAGE_LABEL, ClusterJobs, Manifest, stage_of
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.cluster_watch import Watched, watching
from pretrain_testing.disturbed_job import (
    ATTEMPT_LABEL,
    INDEX_LABEL,
    DisturbedJob,
    has_progressed,
)
from pretrain_testing.killed_job import RANK
from pretrain_testing.pod_metrics import scrape_pod
from pretrain_testing.small_jobs import training_job

KILLS = 3
STEPS = 100_000
"""Far more than the job gets to."""

PHASES = ("detect", "delete", "schedule", "start", "load", "restore", "first_step")
"""In this order: the operator decides; the old pods go and new ones exist; they have nodes; their
containers run; rank 0's imports, the meeting of the ranks and the model; the newest checkpoint is
loaded; one step is done.
"""

_NAME = "recovery"
_PATIENCE_SECONDS = 900.0
_LOOK_SECONDS = 0.05


def measure_recovery(kills: int = KILLS) -> dict[str, Any]:
    """Median seconds of each phase, and the longest way back; brings the bed up if it is not.

    `seconds_beyond_start_and_load` leaves out the start of containers, imports and the model.
    """
    load = os.getloadavg()[0]
    with bed_for_session("full") as bed, passing_namespace(bed.api, _NAME) as namespace:
        runs = _measure(bed, namespace, kills)
    medians = {
        f"{phase}_seconds": statistics.median(run[phase] for run in runs) for phase in PHASES
    }
    totals = [sum(run.values()) for run in runs]
    beyond = [sum(run.values()) - run["start"] - run["load"] for run in runs]
    return {
        "kills": kills,
        "load_average": load,
        **medians,
        "seconds_in_all": max(totals),
        "seconds_beyond_start_and_load": max(beyond),
    }


def _measure(bed: Bed, namespace: str, kills: int) -> list[dict[str, float]]:
    prefix = Prefix(namespace)
    prefix.upload_data()
    job = DisturbedJob(ClusterJobs(bed.kubectl, namespace, bed.api), prefix, _NAME)
    training = training_job(name=_NAME, steps=STEPS)["spec"]["training"]
    with watching(bed, [namespace]) as watched:
        job.start(training={**training, "evaluation": {"everySteps": STEPS}})
        return [_way_back(job, watched) for _ in range(kills)]


def _way_back(job: DisturbedJob, watched: Watched) -> dict[str, float]:
    job.jobs.wait_for(_NAME, "a commit", has_progressed)
    before, victim = job.attempt(), job.workers()[1]["metadata"]["uid"]
    killed = time.monotonic()
    signal_pod(victim, signal.SIGKILL, command=RANK)
    reached = {
        "detect": _until(watched, "PretrainJob", lambda found: _attempt(found) > before),
        "delete": _until_pods(watched, before + 1, lambda _pod: True),
        "schedule": _until_pods(watched, before + 1, lambda pod: "nodeName" in pod["spec"]),
        "start": _until_pods(watched, before + 1, _is_running),
    }
    first, own = _first_step(job.workers()[0])
    reached["load"] = first - own["recovery"] + own["init"]
    reached["restore"] = reached["load"] + own["restore"]
    reached["first_step"] = first
    moments = [killed, *(reached[phase] for phase in PHASES)]
    return {
        phase: max(0.0, after - earlier)
        for phase, earlier, after in zip(PHASES, moments, moments[1:], strict=False)
    }


def _until(watched: Watched, kind: str, holds: Callable[[Manifest], bool]) -> float:
    """When the first version was seen of which something holds; TimeoutError if none comes."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        if found := watched.first(kind, holds):
            return found.seen_at
        time.sleep(_LOOK_SECONDS)
    raise TimeoutError(f"no such {kind} within {_PATIENCE_SECONDS:.0f} s")


def _until_pods(watched: Watched, attempt: int, holds: Callable[[Manifest], bool]) -> float:
    """When something held of both workers of an attempt."""
    return max(
        _until(watched, "Pod", lambda pod, rank=rank: _is(pod, attempt, rank) and holds(pod))  # type: ignore[misc]
        for rank in range(2)
    )


def _is(pod: Manifest, attempt: int, rank: int) -> bool:
    labels = pod["metadata"]["labels"]
    wanted = {STAGE_LABEL: "train", ATTEMPT_LABEL: str(attempt), INDEX_LABEL: str(rank)}
    return bool(wanted.items() <= labels.items())


def _is_running(pod: Manifest) -> bool:
    states = [status["state"] for status in pod["status"].get("containerStatuses", [])]
    return bool(states) and all("running" in state for state in states)


def _attempt(job: Manifest) -> int:
    status = job.get("status", {})
    return int(stage_of(status, "train")["attempt"]) if status.get("stages") else 0


def _first_step(worker: Manifest) -> tuple[float, dict[str, float]]:
    """When rank 0 had done its first step, and what it says of its time before."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end:
        answer = scrape_pod(worker)
        recovery = answer.value("pretrain_recovery_seconds") if answer else None
        if answer and recovery is not None:
            name = "pretrain_job_time_seconds_total"
            told = {key: answer.value(name, category=key) or 0.0 for key in ("init", "restore")}
            return time.monotonic(), {"recovery": recovery, **told}
        time.sleep(_LOOK_SECONDS)
    raise TimeoutError(f"rank 0 did no step within {_PATIENCE_SECONDS:.0f} s")
