"""What people and nodes do to a job in training changes nothing of its weights.

Every disturbed job ends with the weights of one that ran on this machine without a cluster, byte
for byte. About a minute a test, most of it imports of torch on two cores.
"""

from __future__ import annotations

import json
from typing import Any

from bed.chart import NAMESPACE as OPERATOR_NAMESPACE
from bed.cluster import Bed
from pretrain_testing.cluster_jobs import ClusterJobs, stage_of, trains_with_a_checkpoint
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.small_jobs import training_job

LONGEST_NAME = "a-name-of-thirty-six-characters-here"
"""As long as a job's name may be."""


def start(jobs: ClusterJobs, prefix: Prefix, *, name: str, **spec: Any) -> None:
    """Apply the job that is disturbed."""
    job = training_job(name=name)
    jobs.apply({**job, "spec": {**job["spec"], "storage": prefix.storage, **spec}})


def uids(pods: list[dict[str, Any]]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def assert_completes_with(weights: bytes, jobs: ClusterJobs, prefix: Prefix, name: str) -> None:
    jobs.wait_for_condition(name, "Complete")
    assert prefix.weights(jobs.status(name)["exportUri"]) == weights


def test_a_deleted_worker_restarts_the_gang_once_from_the_newest_commit(
    jobs: ClusterJobs, prefix: Prefix, undisturbed_weights: bytes
) -> None:
    start(jobs, prefix, name="job", failurePolicy={"backoff": {"initialSeconds": 1}})
    before = jobs.wait_for("job", "training", trains_with_a_checkpoint)
    gang = jobs.children("pods", "job", "train")

    jobs.delete_child("pod", next(pod for pod in gang if pod_index(pod) == 1))
    status = jobs.wait_for("job", "a second attempt", lambda s: stage_of(s, "train")["attempt"] > 0)

    assert sum(status["restarts"].values()) == 1
    assert_completes_with(undisturbed_weights, jobs, prefix, "job")
    after = jobs.status("job")
    assert sum(after["restarts"].values()) == 1
    assert stage_of(after, "train")["attempt"] == 1
    assert after["attemptStartStep"] >= before["checkpoint"]["step"]
    left = jobs.children("pods", "job", "train")
    assert len(left) == len(gang)
    assert not uids(left) & uids(gang)


def test_a_deleted_operator_goes_unnoticed(
    bed: Bed, jobs: ClusterJobs, prefix: Prefix, undisturbed_weights: bytes
) -> None:
    start(jobs, prefix, name="job")
    jobs.wait_for("job", "training", trains_with_a_checkpoint)
    gang = jobs.children("pods", "job", "train")

    bed.kubectl("-n", OPERATOR_NAMESPACE, "delete", "pods", "--all", "--wait=false")

    assert_completes_with(undisturbed_weights, jobs, prefix, "job")
    status = jobs.status("job")
    assert not status.get("restarts")
    assert stage_of(status, "train")["attempt"] == 0
    assert uids(jobs.children("pods", "job", "train")) == uids(gang)


def test_a_job_suspended_before_its_start_and_in_training_goes_on_each_time(
    jobs: ClusterJobs, prefix: Prefix, undisturbed_weights: bytes
) -> None:
    assert len(LONGEST_NAME) == 36
    start(jobs, prefix, name=LONGEST_NAME, suspend=True)
    jobs.wait_for(LONGEST_NAME, "suspension", lambda s: s.get("phase") == "Suspended")
    assert not jobs.children("jobs,pods,services,configmaps", LONGEST_NAME)

    jobs.patch_spec(LONGEST_NAME, suspend=False)
    jobs.wait_for(LONGEST_NAME, "training", trains_with_a_checkpoint)
    jobs.patch_spec(LONGEST_NAME, suspend=True)
    jobs.wait_for(LONGEST_NAME, "suspension", lambda s: s.get("phase") == "Suspended")
    jobs.wait_until_gone("pods", LONGEST_NAME, "train")
    assert not jobs.children("jobs", LONGEST_NAME, "train")
    jobs.patch_spec(LONGEST_NAME, suspend=False)

    assert_completes_with(undisturbed_weights, jobs, prefix, LONGEST_NAME)
    assert not jobs.status(LONGEST_NAME).get("restarts")


def test_a_job_deleted_without_an_operator_leaves_nothing(
    bed: Bed, jobs: ClusterJobs, prefix: Prefix
) -> None:
    start(jobs, prefix, name="job")
    jobs.wait_for("job", "its first stage", lambda s: s.get("phase") == "Tokenizing")
    for child in [jobs.get("job"), *jobs.children("jobs,services,configmaps", "job")]:
        assert not child["metadata"].get("finalizers"), child["metadata"]["name"]
    scale = ("-n", OPERATOR_NAMESPACE, "scale", "deployment", "--all")
    replicas = json.loads(
        bed.kubectl("-n", OPERATOR_NAMESPACE, "get", "deployments", "--output=json")
    )["items"][0]["spec"]["replicas"]
    bed.kubectl(*scale, "--replicas=0")
    try:
        jobs.delete("job")
        jobs.wait_until_gone("jobs,pods,services,configmaps", "job")
    finally:
        bed.kubectl(*scale, f"--replicas={replicas}")


def pod_index(pod: dict[str, Any]) -> int:
    return int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])
