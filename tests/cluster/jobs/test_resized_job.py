"""`kubectl scale` of a job in training: it saves, and goes on with another number of workers."""

from __future__ import annotations

import json

from pretrain_testing.cluster_jobs import ClusterJobs, Manifest, stage_of
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.disturbed_job import BRISK, DisturbedJob
from pretrain_testing.small_jobs import STEPS

NAME = "resized"


def test_a_job_that_is_scaled_in_training_goes_on_from_a_last_save(
    jobs: ClusterJobs, shared_prefix: Prefix
) -> None:
    job = DisturbedJob(jobs, shared_prefix, NAME)
    job.start()
    before = job.wait_for_training()
    assert len(job.workers()) == 2

    job.limit(BRISK)
    jobs.scale(NAME, replicas=1)
    jobs.wait_for(NAME, "the next attempt", lambda s: stage_of(s, "train")["attempt"] == 1)
    jobs.wait_for_condition(NAME, "Complete")
    status = job.status
    assert status["training"]["step"] == STEPS
    assert not status.get("restarts")
    assert stage_of(status, "train")["total"] == 1
    assert [e["reason"] for e in jobs.events(NAME)].count("Resized") == 1
    _check_log(shared_prefix, status, saved=before["checkpoint"]["step"])


def _check_log(prefix: Prefix, status: Manifest, *, saved: int) -> None:
    """Every interval is there once, and training went on from a step saved after the edit."""
    root = status["checkpoint"]["uri"].rpartition("/step-")[0]
    lines = [json.loads(line) for line in prefix.read(f"{root}/logs/log.jsonl").splitlines()]
    steps = [line["step"] for line in lines if "loss" in line]
    assert steps == sorted(set(steps))
    assert steps[-1] == STEPS
    (mark,) = [line for line in lines if line.get("resumed")]
    assert mark["generation"] == 2
    assert mark["step"] > saved
