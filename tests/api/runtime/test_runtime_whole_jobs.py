"""A real operator process runs PretrainJobs against a real API server; the test plays kubelet."""

from __future__ import annotations

from typing import Any

from pretrain_testing.operator_process import OperatorProcess
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.processes import wait_for

STAGES = 5


def test_a_job_runs_through_all_its_stages_with_few_requests(
    operator: OperatorProcess, job: PlayedJob
):
    before = operator.requests()
    job.create()
    status = job.play_to_the_end()
    assert [s["state"] for s in status["stages"]] == ["Complete"] * STAGES
    assert status["exportUri"].endswith("export-fp")
    assert operator.requests() - before <= 8 * STAGES
    assert operator.metric("pretrain_operator_api_requests_total", code="403") == 0


def test_its_events_are_few_and_each_is_another(operator: OperatorProcess, job: PlayedJob):
    job.create()
    job.play_to_the_end()
    wait_for("the last event", lambda: "JobComplete" in [event["reason"] for event in job.events()])
    told = [(event["reason"], event["message"]) for event in job.events()]
    assert len(told) == len(set(told)) <= 3 * STAGES


def test_nothing_but_status_is_ever_written_on_the_users_object(
    operator: OperatorProcess, job: PlayedJob
):
    created = job.create().raw()["metadata"]
    job.play_to_the_end()
    metadata = job.raw()["metadata"]
    managers = {(m["manager"], m.get("subresource")) for m in metadata["managedFields"]}
    assert "finalizers" not in metadata
    assert metadata.get("annotations") == created.get("annotations")
    assert metadata["generation"] == created["generation"]
    assert ("pretrain-operator", "status") in managers
    assert ("pretrain-operator", None) not in managers


def test_a_gang_has_its_service_first_and_only_while_it_trains(
    operator: OperatorProcess, job: PlayedJob
):
    job.create()
    job.run_until("train")
    job.wait_for_phase("Training")
    service = job.objects("services")[0]
    config = next(c for c in job.objects("configmaps") if c["metadata"]["name"] == name_of(service))
    assert version_of(service) < version_of(config)
    job.succeed("train")
    wait_for("the end of the Service", lambda: job.objects("services") == [])


def name_of(raw: dict[str, Any]) -> str:
    return str(raw["metadata"]["name"])


def version_of(raw: dict[str, Any]) -> int:
    """Of something that never changes: when it was made."""
    return int(raw["metadata"]["resourceVersion"])


def test_a_lost_worker_costs_one_restart_and_the_whole_gang_is_made_anew(
    operator: OperatorProcess, job: PlayedJob
):
    job.create(failurePolicy={"backoff": {"initialSeconds": 0}})
    job.run_until("train")
    job.wait_for_phase("Training")
    job.delete_pod(job.pods("train")[1])
    new = job.pods("train", attempt=1)
    assert len(new) == 2
    status = job.status()
    assert sum(status["restarts"].values()) == 1
    job.run("train", attempt=1)
    job.wait_for_phase("Training")
    attempts = {pod["metadata"]["labels"]["pretrain.dev/attempt"] for pod in job.pods("train", 1)}
    assert attempts == {"1"}


def test_a_job_is_suspended_and_resumed_without_a_restart(
    operator: OperatorProcess, job: PlayedJob
):
    job.create()
    job.run_until("train")
    job.wait_for_phase("Training")
    job.edit(suspend=True)
    job.wait_for_phase("Suspended")
    wait_for("the end of all pods", lambda: not running(job))
    assert job.objects("services") == []
    job.edit(suspend=False)
    job.run("train", attempt=1)
    assert job.wait_for_phase("Training")["restarts"] == {}


def running(job: PlayedJob) -> list[dict[str, Any]]:
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


def test_a_finished_job_is_deleted_when_its_time_has_come(
    operator: OperatorProcess, job: PlayedJob
):
    job.create(ttlSecondsAfterFinished=1)
    job.play()
    wait_for("the end of the children", lambda: job.objects("jobs") == [])
