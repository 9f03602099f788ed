"""A job on the bed whose processes are killed from below, against the same job on this machine.

The bed must be up, with its operator (`make cluster`). No ledger of a pod outlives it, so what is
compared beside the weights is what training.json tells: its curve, and how many samples and tokens.
"""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial

import psutil
from bed.breakage import processes_of_pod
from bed.cluster import Bed
from bed.lifecycle import is_up
from bed.namespaces import passing_namespace
from bed.profile import profile

from pretrain_testing.cluster_jobs import ClusterJobs, Manifest, stage_of
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.disturbed_job import DisturbedJob
from pretrain_testing.killed_commands import Workdir, runs
from pretrain_testing.killed_job import unlimited
from pretrain_testing.killed_ranks import WRITER
from pretrain_testing.kills import Done, Kill, Moment, Victim

PLACE = "chaos"
"""Of all such jobs in the storage, so that only the first prepares the text; and of namespaces."""

WORKERS = 2
MOMENTS: tuple[Moment, ...] = ("training", "a save")
VICTIMS: tuple[Victim, ...] = ("one rank", "its writer", "all ranks", "the launcher")


def seeded_cluster_kills(source: random.Random, *, kills: int) -> list[Kill]:
    """Kills in a job of two pods, each after a commit of the attempt that it hits."""
    return [
        Kill(source.choice(MOMENTS), source.choice(VICTIMS), rank=source.randrange(WORKERS))
        for _ in range(kills)
    ]


@contextmanager
def job_on_the_bed(name: str) -> Iterator[DisturbedJob]:
    """A job that trains on the bed that is up; it goes with its namespace."""
    full = profile("full")
    assert is_up(full), "no bed is up: make cluster"
    bed, prefix = Bed(full), Prefix(PLACE)
    prefix.upload_data()
    with passing_namespace(bed.api, PLACE) as namespace:
        job = DisturbedJob(ClusterJobs(bed.kubectl, namespace, bed.api), prefix, name)
        job.start()
        try:
            yield job
        finally:
            job.jobs.delete(name)


def run_killed(job: DisturbedJob, kills: Sequence[Kill]) -> Iterator[list[Done]]:
    """Carry out the kills in order, then wait for the job's end."""
    for kill in kills:
        job.wait_for_training()
        if kill.moment == "a save":
            job.wait_for_a_save()
        attempt, workers = job.attempt(), job.workers()
        _carry_out(kill, workers)
        if not kill.ends_the_attempt:
            yield [Done(kill)]
            continue
        job.jobs.wait_for(job.name, "the next attempt", partial(_is_later, attempt))
        unlimited(workers)
        yield [Done(kill, int(job.wait_for_training().get("attemptStartStep") or 0))]
    job.limit(None)
    job.jobs.wait_for_condition(job.name, "Complete")


def compare(job: DisturbedJob, undisturbed: Workdir) -> None:
    """Assert that the job came to the same weights by the same training as one on this machine."""
    status = job.status
    weights = job.prefix.weights(status["exportUri"])
    assert weights == undisturbed.weights.read_bytes(), "weights differ"
    told = json.loads(job.prefix.read(f"{stage_of(status, 'train')['uri']}/training.json"))
    (path,) = undisturbed.storage.glob("models/*/training.json")
    expected = json.loads(path.read_bytes())
    for figure in ("steps", "samples", "tokens", "curve", "evaluations"):
        assert told[figure] == expected[figure], f"{figure} differ"


def _carry_out(kill: Kill, workers: Sequence[Manifest]) -> None:
    pods = workers if kill.victim == "all ranks" else workers[kill.rank : kill.rank + 1]
    found = [process for pod in pods for process in processes_of_pod(pod["metadata"]["uid"])]
    victims = [process for process in found if _is(kill.victim, process)]
    assert victims, f"not carried out: {kill}"
    for process in victims:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)


def _is(victim: Victim, process: psutil.Process) -> bool:
    if victim == "the launcher":
        return runs(process, "train")
    if victim == "its writer":
        with suppress(psutil.Error):
            return WRITER in process.cmdline()
        return False
    return runs(process, "train-worker")


def _is_later(attempt: int, status: Manifest) -> bool:
    return int(stage_of(status, "train")["attempt"]) > attempt
