"""A job in training on the bed, its pods within reach, to be disturbed.

All such jobs share one part of the storage, so only the first of them prepares the text. Each
trains by itself, for the model is forgotten between two. Once an attempt is about to train, it is
slowed down, and further after its first commit, so that a fast machine leaves time for what is to
be done to it.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bed.breakage import limit_pod
from bed.s3 import BUCKET, s3_client

from pretrain_testing.cluster_jobs import (
    PATIENCE_SECONDS,
    TERMINAL,
    ClusterJobs,
    Manifest,
    stage_of,
)
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.small_jobs import training_job

BRISK, SLOW = 0.6, 0.01
"""Cores of a worker until its attempt's first commit, and afterwards unless told otherwise."""

GRACE_SECONDS = 30
"""Time that its workers get to end."""

ATTEMPT_LABEL = "pretrain.dev/attempt"
INDEX_LABEL = "batch.kubernetes.io/job-completion-index"
_POLL_SECONDS = 0.3
_SMALL = {"requests": {"cpu": "100m", "memory": "512Mi"}, "limits": {"cpu": "2", "memory": "4Gi"}}
_LEAVES = [
    {
        "key": f"node.kubernetes.io/{taint}",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 5,
    }
    for taint in ("unreachable", "not-ready")
]
"""Pods are taken off a lost node soon, where Kubernetes by itself waits for five minutes."""


def disturbed_spec(prefix: Prefix) -> dict[str, Any]:
    """The spec: small workers that fit onto one node, and short waits."""
    pod = {"spec": {"terminationGracePeriodSeconds": GRACE_SECONDS}}
    spec = training_job(name="any")["spec"]
    workers = {**spec["workers"], "resources": _SMALL, "podTemplate": pod}
    policy = {"backoff": {"initialSeconds": 1}, "quarantine": {"failures": 0}}
    return {
        **spec,
        "storage": prefix.storage,
        "checkpoint": {"everySteps": 10},
        "workers": workers,
        "preprocess": {**spec["preprocess"], "resources": _SMALL},
        "export": {"resources": _SMALL},
        "failurePolicy": policy,
        "scheduling": {"tolerations": _LEAVES},
    }


@dataclass
class DisturbedJob:
    """One of them, by its name in a namespace."""

    jobs: ClusterJobs
    prefix: Prefix
    name: str
    slow: float = SLOW
    """Cores of a worker after its attempt's first commit."""

    _pace: tuple[int, float] = field(default=(-1, 0.0), init=False)
    """The attempt that was last slowed down, and the cores of its workers."""

    def start(self, **changes: Any) -> None:
        """Apply it, with fields of its spec replaced.

        What another one trained from the same text is forgotten before.
        """
        for folder in ("models", "exports"):
            forget(f"{self.prefix.name}/{folder}/")
        self.jobs.apply(self._manifest(**changes))

    def replace(self) -> None:
        """Delete it, and apply it again as soon as its name is free."""
        self.jobs.delete(self.name)
        self._pace = (-1, 0.0)
        self.jobs.apply(self._manifest())

    @property
    def status(self) -> Manifest:
        """As it is now."""
        return self.jobs.status(self.name)

    def attempt(self) -> int:
        """The current attempt of its training."""
        stages = self.status.get("stages")
        return stage_of({"stages": stages}, "train")["attempt"] if stages else 0

    def workers(self) -> list[Manifest]:
        """The pods of the current attempt, by index."""
        number = str(self.attempt())
        pods = self.jobs.children("pods", self.name, "train")
        mine = [pod for pod in pods if pod["metadata"]["labels"][ATTEMPT_LABEL] == number]
        return sorted(mine, key=index_of)

    def uids(self) -> set[str]:
        """Of all pods of its training, those of older attempts too."""
        pods = self.jobs.children("pods", self.name, "train")
        return {pod["metadata"]["uid"] for pod in pods}

    def wait_for_training(self) -> Manifest:
        """Wait until an attempt trains and has committed something; its status then."""
        self._wait_for("a commit", lambda: self._slow_down(self.jobs.get(self.name)))
        return self.jobs.wait_for(self.name, "a commit in status", has_progressed)

    def wait_for_changes(self, count: int) -> None:
        """Wait until somebody has written it this often; slowed down as soon as it trains."""
        seen: set[str] = set()

        def changed() -> bool:
            job = self.jobs.get(self.name)
            seen.add(job["metadata"]["resourceVersion"])
            self._slow_down(job)
            return len(seen) > count

        self._wait_for(f"{count} changes", changed)

    def wait_for_a_save(self) -> None:
        """Wait until a checkpoint is being stored."""
        self._wait_for("a save", lambda: bool(_uncommitted(self.checkpoints())))

    def limit(self, cores: float | None) -> None:
        """How many cores each of its workers may use."""
        for pod in self.workers():
            limit_pod(pod["metadata"]["uid"], cores=cores)

    def checkpoints(self) -> set[str]:
        """Keys of all that its workers have stored."""
        return keys(self.checkpoint_prefix())

    def checkpoint_prefix(self) -> str:
        """What those keys begin with."""
        return self._prefix_of(self.jobs.get(self.name))

    def _manifest(self, **changes: Any) -> Manifest:
        spec = {**disturbed_spec(self.prefix), **changes}
        return {**training_job(name=self.name), "spec": spec}

    def _prefix_of(self, job: Manifest) -> str:
        return f"{self.prefix.name}/checkpoints/{self.name}-{job['metadata']['uid']}/"

    def _slow_down(self, job: Manifest) -> bool:
        """Give its workers what they need for what they are at; whether there is a commit."""
        status = job.get("status", {})
        assert status.get("phase") not in TERMINAL, status
        attempt = stage_of(status, "train")["attempt"] if status.get("stages") else 0
        stored, generation = keys(self._prefix_of(job)), f"{attempt + 1:06d}"
        commits = [key for key in stored if f"/{generation}-" in key and key.endswith("/COMMIT")]
        claimed = any(key.endswith(f"/gen-{generation}") for key in stored)
        pace = attempt, self.slow if commits else BRISK
        if claimed and pace != self._pace:
            self._pace = pace
            self.limit(pace[1])
        return bool(commits)

    def _wait_for(self, what: str, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds():
            assert time.monotonic() < end, f"{self.name}: {what} did not come: {self.status}"
            time.sleep(_POLL_SECONDS)


def has_progressed(status: Manifest) -> bool:
    """Whether training runs, and this attempt has a commit of its own."""
    newest = (status.get("checkpoint") or {}).get("step", 0)
    begun = int(status.get("attemptStartStep") or 0)
    return status.get("phase") == "Training" and newest > begun


def _uncommitted(stored: set[str]) -> set[str]:
    """Folders of checkpoints without a COMMIT."""
    folders = {key.rpartition("/ranks/")[0] or key.rpartition("/rank-")[0] for key in stored}
    return {folder for folder in folders if folder and f"{folder}/COMMIT" not in stored}


def index_of(pod: Manifest) -> int:
    """A worker's completion index."""
    return int(pod["metadata"]["labels"][INDEX_LABEL])


@functools.cache
def _client() -> Any:
    """One for all looks: making one costs more than looking."""
    return s3_client()


def keys(prefix: str) -> set[str]:
    """Keys of the objects below a prefix of the bucket."""
    pages = _client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET, Prefix=prefix)
    return {found["Key"] for page in pages for found in page.get("Contents", [])}


def forget(prefix: str) -> None:
    """Delete all below a prefix of the bucket."""
    client = _client()
    for key in keys(prefix):
        client.delete_object(Bucket=BUCKET, Key=key)
