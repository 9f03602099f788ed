"""A real operator process runs PretrainJobs against a real API server; the test plays kubelet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from bed.cluster import Bed
from pretrain_testing.operator_process import OperatorProcess
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.processes import wait_for

STAGES = 5
Raw = dict[str, Any]


@dataclass(frozen=True)
class WholeJob:
    """What was seen of a job that ran through all its stages.

    `trained_with` are the names and versions of the training's children, while it ran.
    """

    created: Raw
    ended: Raw
    events: list[Raw]
    requests: float
    trained_with: dict[str, Raw]
    services_after_training: list[Raw]


@pytest.fixture(scope="module")
def whole(bed: Bed, shared_operator: OperatorProcess, shared_namespace: str) -> WholeJob:
    """One job for all tests that only look at what came of it."""
    before = shared_operator.requests()
    job = PlayedJob(bed.api, shared_namespace, name="whole")
    created = job.create().raw()
    job.run_until("train")
    job.wait_for_phase("Training")
    trained_with = {
        raw["kind"]: raw
        for raw in named(job, "-train-0")
        if raw["kind"] in ("Service", "ConfigMap")
    }
    job.succeed("train")
    job.run("evaluate")
    services = job.objects("services")
    job.succeed("evaluate")
    job.run("export")
    job.succeed("export")
    job.wait_for_phase("Complete")
    wait_for("the last event", lambda: "JobComplete" in [event["reason"] for event in job.events()])
    requests = shared_operator.requests() - before
    return WholeJob(created, job.raw(), job.events(), requests, trained_with, services)


def named(job: PlayedJob, end: str) -> Iterator[Raw]:
    """Services and ConfigMaps of a job whose names end so, each with its kind."""
    for kind, plural in (("Service", "services"), ("ConfigMap", "configmaps")):
        for raw in job.objects(plural):
            if raw["metadata"]["name"].endswith(end):
                yield {**raw, "kind": kind}


def test_a_job_runs_through_all_its_stages_with_few_requests(
    whole: WholeJob, operator: OperatorProcess
):
    status = whole.ended["status"]
    assert [s["state"] for s in status["stages"]] == ["Complete"] * STAGES
    assert status["exportUri"].endswith("export-fp")
    assert whole.requests <= 8 * STAGES
    assert operator.metric("pretrain_operator_api_requests_total", code="403") == 0


def test_its_events_are_few_and_each_is_another(whole: WholeJob):
    told = [(event["reason"], event["message"]) for event in whole.events]
    assert len(told) == len(set(told)) <= 3 * STAGES


def test_nothing_but_status_is_ever_written_on_the_users_object(whole: WholeJob):
    created, metadata = whole.created["metadata"], whole.ended["metadata"]
    managers = {(m["manager"], m.get("subresource")) for m in metadata["managedFields"]}
    assert "finalizers" not in metadata
    assert metadata.get("annotations") == created.get("annotations")
    assert metadata["generation"] == created["generation"]
    assert ("pretrain-operator", "status") in managers
    assert ("pretrain-operator", None) not in managers


def test_a_gang_has_its_service_first_and_only_while_it_trains(whole: WholeJob):
    service, config = whole.trained_with["Service"], whole.trained_with["ConfigMap"]
    assert version_of(service) < version_of(config)
    assert whole.services_after_training == []


def version_of(raw: Raw) -> int:
    """Of something that never changes: when it was made."""
    return int(raw["metadata"]["resourceVersion"])


def test_a_lost_worker_costs_one_restart_and_the_whole_gang_is_made_anew(
    operator: OperatorProcess, job: PlayedJob
):
    job.create(failurePolicy={"backoff": {"initialSeconds": 0}})
    job.train()
    job.delete_pod(job.pods("train")[1])
    new = job.pods("train", attempt=1)
    assert len(new) == 2
    status = job.status()
    assert sum(status["restarts"].values()) == 1
    job.run("train", attempt=1)
    job.wait_for_phase("Training")
    attempts = {pod["metadata"]["labels"]["pretrain.dev/attempt"] for pod in job.pods("train", 1)}
    assert attempts == {"1"}
    wait_for("the end of the failed attempt's Job", lambda: trainings(job) == ["1"])


def trainings(job: PlayedJob) -> list[str]:
    """Attempts of training that have a Job: one that has failed would be an alert for ever."""
    labels = [raw["metadata"]["labels"] for raw in job.objects("jobs")]
    mine = [found for found in labels if found["pretrain.dev/stage"] == "train"]
    return [found["pretrain.dev/attempt"] for found in mine]


def test_a_job_is_suspended_and_resumed_without_a_restart(
    operator: OperatorProcess, job: PlayedJob
):
    job.create()
    job.train()
    job.edit(suspend=True)
    job.wait_for_phase("Suspended")
    wait_for("the end of all pods", lambda: not running(job))
    assert job.objects("services") == []
    job.edit(suspend=False)
    job.run("train", attempt=1)
    assert job.wait_for_phase("Training")["restarts"] == {}


def running(job: PlayedJob) -> list[Raw]:
    """Pods that have not ended."""
    ended = ("Succeeded", "Failed")
    return [pod for pod in job.objects("pods") if pod["status"].get("phase") not in ended]


def test_a_job_that_begins_suspended_gets_one_status_and_nothing_else(
    operator: OperatorProcess, job: PlayedJob
):
    job.create(suspend=True)
    job.wait_for_phase("Suspended")
    before = operator.requests()
    operator.wait_for_resyncs()
    assert operator.requests() == before
    assert job.objects("jobs") == job.objects("configmaps") == []


def test_a_job_of_another_controller_is_not_touched(operator: OperatorProcess, job: PlayedJob):
    before = operator.requests()
    created = job.create(managedBy="kueue.x-k8s.io/multikueue").raw()
    operator.wait_for_resyncs()
    assert operator.requests() == before
    assert job.raw() == created
