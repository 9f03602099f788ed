"""The job of a soak: tiny, on two workers, saving every few seconds, and far from its end."""

from __future__ import annotations

from typing import Any

from bed.cluster import Bed
from pretrain_api.reports import Cause

from pretrain_testing.cluster_jobs import ClusterJobs
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.disturbed_job import DisturbedJob, disturbed_spec
from pretrain_testing.fault_world import python_with_site

NAME = "soak"
KEEP_LAST = 2
WORKERS = 2
EVERY_STEPS = 15
"""A save every few seconds at `CORES`."""

CORES = 0.4
"""Of each worker once its attempt has a commit, so that the rest of the bed has room."""

LEDGERS = "/tmp"  # noqa: S108 - the pod's own
"""Where ranks write their ledgers: a volume of the pod, which is a folder of this machine."""

SITE = f"""
import os
os.environ.setdefault("PRETRAIN_LEDGER_DIR", {LEDGERS!r})
"""
"""Runs at the start of every Python of a worker: no pod template may set the product's names."""

_STEPS_A_SECOND = 50
"""More than any machine makes at `CORES`."""


def prepared_job(bed: Bed, namespace: str) -> DisturbedJob:
    """The job, not applied yet, with its text in the storage."""
    site = {"metadata": {"name": "site"}, "data": {"sitecustomize.py": SITE}}
    bed.api.create(f"/api/v1/namespaces/{namespace}/configmaps", site)
    prefix = Prefix(NAME)
    prefix.upload_data()
    return DisturbedJob(ClusterJobs(bed.kubectl, namespace, bed.api), prefix, NAME, slow=CORES)


def soak_changes(prefix: Prefix, *, seconds: float) -> dict[str, Any]:
    """The sections of a disturbed job's spec that are a soak's own, for so long a training.

    Restarts have no end, and pods stay on a node whose kubelet is away for some seconds.
    """
    spec = disturbed_spec(prefix)
    steps = round(seconds * _STEPS_A_SECOND)
    pod = {**spec["workers"]["podTemplate"]["spec"], **python_with_site()["spec"]}
    return {
        "training": {
            **spec["training"],
            "maxSteps": steps,
            "evaluation": {"everySteps": steps},
        },
        "checkpoint": {"everySteps": EVERY_STEPS, "keepLast": KEEP_LAST},
        "workers": {**spec["workers"], "replicas": WORKERS, "podTemplate": {"spec": pod}},
        "failurePolicy": {
            **spec["failurePolicy"],
            "backoff": {"initialSeconds": 1, "maximumSeconds": 5},
            "restarts": [{"cause": Cause.INFRASTRUCTURE.value, "limit": 100_000}],
        },
        "scheduling": {},
    }
