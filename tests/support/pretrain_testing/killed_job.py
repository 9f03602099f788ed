"""One job whose workers are taken from it, one way after the other, and what was seen of it.

Every kill waits for a commit of the attempt that it ends, so what each of them caused can be told
apart, and the job never lacks progress.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from bed.breakage import limit_pod, lose_node, revive_node, signal_pod
from bed.cluster import Bed

from pretrain_testing.cluster_jobs import STAGE_LABEL, ClusterJobs, Manifest, stage_of
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.cluster_watch import Watched, watching
from pretrain_testing.completed_job import operator_requests
from pretrain_testing.disturbed_job import ATTEMPT_LABEL, DisturbedJob

NAME = "a-name-of-thirty-six-characters-here"
"""As long as a job's name may be."""

LOST_NODE, DRAINED_NODE = "node-b", "node-a"
RANK = "train-worker"
"""A word in the command line of a rank, and of no other process of its pod."""


@dataclass(frozen=True)
class Kill:
    """A way to take workers from a job, and the cause of restart that it is; "" for none."""

    name: str
    cause: str
    act: Callable[[Bed, DisturbedJob], None]
    mend: Callable[[Bed], None] = lambda _bed: None
    """What is done once the next attempt runs."""


@dataclass(frozen=True)
class Killed:
    """What was seen of one kill: status and workers before, status once its cause was told."""

    kill: Kill
    before: Manifest
    workers: list[Manifest]
    after: Manifest
    begun_at: datetime
    running_at: datetime
    """When the next attempt's Job was there."""

    versions: list[Manifest]
    """The job as it was from the kill until then."""


@dataclass
class KilledJob:
    """The job, now that it is complete."""

    jobs: ClusterJobs
    prefix: Prefix
    killed: list[Killed] = field(default_factory=list)
    watched: Watched = field(default_factory=Watched)
    children_at_first: list[Manifest] = field(default_factory=list)
    """What it had before its suspension, in which it was created, was lifted."""

    status: Manifest = field(default_factory=dict)
    events: list[Manifest] = field(default_factory=list)
    requests: list[Manifest] = field(default_factory=list)

    def pods_of(self, attempt: int) -> list[Manifest]:
        """The workers of an attempt, each as it was last seen."""
        wanted = {STAGE_LABEL: "train", ATTEMPT_LABEL: str(attempt)}.items()
        pods = [v.object for v in self.watched.versions if v.kind == "Pod"]
        mine = [pod for pod in pods if wanted <= pod["metadata"]["labels"].items()]
        return list({pod["metadata"]["uid"]: pod for pod in mine}.values())

    def checkpoints(self) -> list[int]:
        """Steps of the checkpoints that status told of, one version after the other."""
        jobs = [v.object for v in self.watched.versions if v.kind == "PretrainJob"]
        told = [job.get("status", {}).get("checkpoint") or {} for job in jobs]
        return [checkpoint.get("step", 0) for checkpoint in told]


def unlimited(workers: list[Manifest]) -> list[Manifest]:
    """The workers, with all the time of the machine to end in."""
    for pod in workers:
        limit_pod(pod["metadata"]["uid"], cores=None)
    return workers


def delete_a_worker(_bed: Bed, job: DisturbedJob) -> None:
    job.jobs.delete_child("pod", unlimited(job.workers())[1])


def kill_a_rank(rank: int) -> Callable[[Bed, DisturbedJob], None]:
    def kill(_bed: Bed, job: DisturbedJob) -> None:
        signal_pod(job.workers()[rank]["metadata"]["uid"], signal.SIGKILL, command=RANK)

    return kill


def lose_a_node(bed: Bed, job: DisturbedJob) -> None:
    assert LOST_NODE in {pod["spec"]["nodeName"] for pod in job.workers()}
    lose_node(bed.profile, LOST_NODE)


def bring_the_node_back(bed: Bed) -> None:
    revive_node(bed.profile, LOST_NODE)
    bed.kubectl("wait", f"node/{LOST_NODE}", "--for=condition=Ready", "--timeout=300s")


def suspend_and_resume(_bed: Bed, job: DisturbedJob) -> None:
    jobs = job.jobs
    unlimited(job.workers())
    jobs.patch_spec(NAME, suspend=True)
    jobs.wait_for(NAME, "suspension", lambda s: s.get("phase") == "Suspended")
    jobs.wait_until_gone("jobs,pods", NAME, "train")
    jobs.patch_spec(NAME, suspend=False)


def drain_a_node(bed: Bed, job: DisturbedJob) -> None:
    """Only the job's own pods: the node is not taken from others that use the bed."""
    assert DRAINED_NODE in {pod["spec"]["nodeName"] for pod in unlimited(job.workers())}
    flags = ("--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=300s")
    bed.kubectl("drain", DRAINED_NODE, *flags, f"--pod-selector=pretrain.dev/job={NAME}")


def uncordon(bed: Bed) -> None:
    bed.kubectl("uncordon", DRAINED_NODE)


KILLS = (
    Kill("the job is suspended", "", suspend_and_resume),
    Kill("a worker's pod is deleted", "Preempted", delete_a_worker),
    Kill("a rank is killed", "Infrastructure", kill_a_rank(1)),
    Kill("rank 0 is killed", "Infrastructure", kill_a_rank(0)),
    Kill("a node is lost", "Infrastructure", lose_a_node, bring_the_node_back),
    Kill("a node is drained", "Preempted", drain_a_node, uncordon),
)
"""The lost node leaves all workers on the other one, which is the one that is drained then."""


@contextmanager
def killed_job(bed: Bed, jobs: ClusterJobs, prefix: Prefix) -> Iterator[KilledJob]:
    """Run the job through all kills to its end."""
    job = DisturbedJob(jobs, prefix, NAME)
    with watching(bed, [jobs.namespace]) as watched:
        seen = KilledJob(jobs, prefix, watched=watched)
        seen.children_at_first = _start_suspended(job)
        for kill in KILLS:
            seen.killed.append(_kill(bed, job, kill, watched))
        jobs.wait_for_condition(NAME, "Complete")
        seen.status, seen.events = job.status, jobs.events(NAME)
    seen.requests = [r for r in operator_requests(bed) if _namespace(r) == jobs.namespace]
    yield seen


def _start_suspended(job: DisturbedJob) -> list[Manifest]:
    job.start(suspend=True)
    job.jobs.wait_for(NAME, "suspension", lambda s: s.get("phase") == "Suspended")
    children = job.jobs.children("jobs,pods,services,configmaps", NAME)
    job.jobs.patch_spec(NAME, suspend=False)
    return children


def _kill(bed: Bed, job: DisturbedJob, kill: Kill, watched: Watched) -> Killed:
    before = job.wait_for_training()
    workers, attempt = job.workers(), job.attempt()
    begun_at, known = datetime.now(UTC), len(watched.versions)
    try:
        kill.act(bed, job)
        after = job.jobs.wait_for(NAME, "the cause", lambda s: _attempt(s) > attempt)
        unlimited(workers)
        job.jobs.wait_for(NAME, "the next attempt", lambda s: _runs(s, attempt + 1))
        running_at = datetime.now(UTC)
    finally:
        kill.mend(bed)
    versions = [v.object for v in watched.versions[known:] if v.kind == "PretrainJob"]
    return Killed(kill, before, workers, after, begun_at, running_at, versions)


def _attempt(status: Manifest) -> int:
    return int(stage_of(status, "train")["attempt"])


def _runs(status: Manifest, attempt: int) -> bool:
    stage = stage_of(status, "train")
    return bool(stage["attempt"] == attempt and stage["state"] == "Running")


def _namespace(event: dict[str, Any]) -> str:
    return str(event.get("objectRef", {}).get("namespace", ""))
