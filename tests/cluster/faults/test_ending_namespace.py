"""A namespace that is being deleted takes its jobs along, and nothing is created in it again."""

from __future__ import annotations

import secrets
from typing import Any

from bed.cluster import Bed
from bed.namespaces import create_namespace
from pretrain_testing.cluster_jobs import ClusterJobs
from pretrain_testing.completed_job import operator_requests
from pretrain_testing.fault_world import PLACE, SMALL
from pretrain_testing.small_jobs import training_job

SECONDS = 90
"""For the controllers to empty the namespace: the grace of its pods, and a minute."""


def resources_refused(bed: Bed, namespace: str) -> list[str]:
    """What the operator was not let create there, a word for each try."""
    requests: list[dict[str, Any]] = operator_requests(bed)
    mine = [r for r in requests if r.get("objectRef", {}).get("namespace") == namespace]
    refused = [r for r in mine if int(r["responseStatus"]["code"]) == 403]
    return [str(r["objectRef"]["resource"]) for r in refused]


def test_a_job_goes_with_its_namespace_and_nothing_is_tried_there_again(bed: Bed) -> None:
    namespace = f"ending-{secrets.token_hex(3)}"
    create_namespace(bed.api, namespace)
    jobs = ClusterJobs(bed.kubectl, namespace)
    job = training_job(name="waiting")
    nowhere = {**SMALL, "scheduling": {"nodeSelector": {PLACE: "nowhere"}}}
    jobs.apply({**job, "spec": {**job["spec"], **nowhere}})
    jobs.wait_for("waiting", "its sentence", lambda s: "Unschedulable" in s.get("blockedBy", ""))

    bed.kubectl("delete", "namespace", namespace, f"--timeout={SECONDS}s")

    refused = resources_refused(bed, namespace)
    children = [resource for resource in refused if resource != "events"]
    assert len(children) <= 1, refused
    assert len(refused) <= 2, refused
