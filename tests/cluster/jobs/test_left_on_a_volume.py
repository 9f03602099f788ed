"""A save that never reached the store is handed over by the next attempt, from a volume.

About three minutes. The volume is a claim that all workers mount, which the Pod Security Standard
*restricted* admits, and a directory behind it, which both nodes of the bed share.
"""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bed.breakage import signal_pod
from bed.cluster import Bed
from pretrain_jobs.checkpoint.layout import STEPS, group_keys
from pretrain_jobs.checkpoint.local_copy import LocalCopies
from pretrain_testing.bed_operator import let_pass
from pretrain_testing.cluster_jobs import PATIENCE_SECONDS, POLL_SECONDS, ClusterJobs, stage_of
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.disturbed_job import BRISK, DisturbedJob
from pretrain_testing.killed_job import RANK

pytestmark = pytest.mark.timeout(3600)
"""It waits for two starts of the training: on a busy machine longer than a test may take."""

NAME, CLAIM = "left-on-a-volume", "checkpoints"
USER = 65532
"""Whom the images run as."""

ANY_PROCESS = "python"
SETTLING_SECONDS = 2.0
"""What frozen workers have sent before has reached the store by then."""


@pytest.fixture
def volume(bed: Bed, namespace: str) -> Iterator[Path]:
    """The directory behind a claim of the test's namespace."""
    folder = bed.profile.state / f"volume-{namespace}"
    folder.mkdir()
    os.chown(folder, USER, USER)
    shared = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    size = {"storage": "1Gi"}
    volumes = "/api/v1/persistentvolumes"
    behind = {
        **shared,
        "capacity": size,
        "hostPath": {"path": str(folder), "type": "Directory"},
        "claimRef": {"namespace": namespace, "name": CLAIM},
    }
    asked = {**shared, "volumeName": namespace, "resources": {"requests": size}}
    bed.api.create(volumes, _object("PersistentVolume", namespace, behind))
    bed.api.create(
        f"/api/v1/namespaces/{namespace}/persistentvolumeclaims",
        _object("PersistentVolumeClaim", CLAIM, asked),
    )
    yield folder
    bed.api.request("DELETE", f"{volumes}/{namespace}")
    shutil.rmtree(folder, ignore_errors=True)


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_a_save_of_killed_workers_that_never_reached_the_store_is_resumed_from(
    bed: Bed,
    jobs: ClusterJobs,
    shared_prefix: Prefix,
    volume: Path,
    undisturbed_weights: bytes,
) -> None:
    job = DisturbedJob(jobs, shared_prefix, NAME)
    claim = {"persistentVolumeClaim": {"claimName": CLAIM}}
    job.start(checkpoint={"everySteps": 10, "localVolume": claim})
    before = job.wait_for_training()
    copies = LocalCopies(volume / jobs.namespace / NAME / jobs.get(NAME)["metadata"]["uid"])

    job.limit(BRISK)
    committed = _stop_the_store_between_saves(bed, job, copies)
    try:
        left = _wait_for_a_save(copies, after=committed)
        for worker in job.workers():
            signal_pod(worker["metadata"]["uid"], signal.SIGKILL, command=RANK)
    finally:
        bed.start("seaweedfs")
    job.limit(None)
    jobs.wait_for_condition(NAME, "Complete")

    status = job.status
    assert stage_of(status, "train")["attempt"] == 1
    assert status["restarts"] == {"Infrastructure": 1}
    assert shared_prefix.weights(status["exportUri"]) == undisturbed_weights
    workers = job.workers()
    assert [_preferred_nodes(worker) for worker in workers] == [before["workers"]["nodes"]] * 2
    told = [_log(jobs, worker) for worker in workers]
    assert any(f"step {left}: rank 0's files were uploaded from this node" in log for log in told)
    assert f"resuming after step {left} (generation 1, saved by 2 ranks)" in told[0]
    assert "and 0.0 MB from the store" in told[0]
    assert not (volume / jobs.namespace).exists()


@contextmanager
def _frozen(job: DisturbedJob) -> Iterator[None]:
    """Have no process of its workers run for a while."""
    uids = [worker["metadata"]["uid"] for worker in job.workers()]
    for uid in uids:
        signal_pod(uid, signal.SIGSTOP, command=ANY_PROCESS)
    try:
        yield
    finally:
        for uid in uids:
            signal_pod(uid, signal.SIGCONT, command=ANY_PROCESS)


def _stop_the_store_between_saves(bed: Bed, job: DisturbedJob, copies: LocalCopies) -> int:
    """Have no store while no save is under way; the step of the last one, which is committed."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        with _frozen(job):
            let_pass(SETTLING_SECONDS)
            begun = group_keys({*_keys(job), *(info.key for info in copies.store.list(STEPS))})
            committed = max(listed.key.step for listed in begun if listed.committed)
            if committed == max(listed.key.step for listed in begun):
                bed.stop("seaweedfs")
                return committed
        time.sleep(POLL_SECONDS)
    raise AssertionError("a save was always under way")


def _keys(job: DisturbedJob) -> set[str]:
    """Names of the objects in the job's checkpoints."""
    return {key.removeprefix(job.checkpoint_prefix()) for key in job.checkpoints()}


def _wait_for_a_save(copies: LocalCopies, *, after: int) -> int:
    """Wait until both ranks have written the files of a later step; that step."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        parts = copies.parts(before=2)
        newest = max((key for key, _ in parts if key.step > after), default=None)
        if newest is not None and {(newest, 0), (newest, 1)} <= {*parts}:
            return newest.step
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"no save after step {after} is whole on the volume")


def _preferred_nodes(worker: dict[str, Any]) -> list[str]:
    preferred = "preferredDuringSchedulingIgnoredDuringExecution"
    (term,) = worker["spec"]["affinity"]["nodeAffinity"][preferred]
    nodes: list[str] = term["preference"]["matchExpressions"][0]["values"]
    return nodes


def _log(jobs: ClusterJobs, worker: dict[str, Any]) -> str:
    """What a worker has written."""
    return jobs.kubectl("-n", jobs.namespace, "logs", worker["metadata"]["name"])
