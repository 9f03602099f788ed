"""Replicas that end, freeze and follow each other; jobs notice nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import yaml
from bed.cluster import Bed
from pretrain_testing.chart import CHART
from pretrain_testing.operator_process import LOOK_SECONDS, OperatorProcess
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.processes import wait_for

Start = Callable[..., OperatorProcess]
OUR_LABEL = "managed-by%3Dpretrain-operator"
FROZEN_TOO_LONG = 75
"""Exit code of a leader that lost its lease."""


def test_of_two_replicas_one_leads_and_both_are_ready(start_operator: Start):
    replicas = [start_operator("operator-0"), start_operator("operator-1")]
    for replica in replicas:
        replica.wait_until_ready()
        assert replica.answer("/healthz") == 200
    wait_for("a leader", lambda: sum(map(leads, replicas)) == 1)


def leads(replica: OperatorProcess) -> float:
    return replica.metric("pretrain_operator_is_leader")


def test_a_leader_that_is_asked_to_end_hands_over(start_operator: Start, own_job: PlayedJob):
    first = start_operator("operator-0").wait_until_leading()
    second = start_operator("operator-1")
    own_job.create()
    own_job.run_until("preprocess")
    assert first.terminate() == 0
    assert "released" in first.logged()
    second.wait_until_leading()
    own_job.succeed("preprocess")
    own_job.run("train")
    own_job.wait_for_phase("Training")


def test_a_leader_that_was_frozen_ends_without_a_write(start_operator: Start, own_job: PlayedJob):
    first = start_operator("operator-0").wait_until_leading()
    second = start_operator("operator-1")
    own_job.create()
    own_job.run_until("preprocess")
    first.freeze()
    second.wait_until_leading()
    own_job.succeed("preprocess")
    own_job.run("train")
    own_job.wait_for_phase("Training")
    written = own_job.raw()
    first.thaw()
    assert first.process.wait(30) == FROZEN_TOO_LONG
    assert "may lead now" in first.logged()
    assert own_job.raw() == written
    trainings = [j for j in own_job.objects("jobs") if "-train-" in j["metadata"]["name"]]
    assert len(trainings) == 1


def test_a_job_is_not_disturbed_when_the_operator_is_killed_in_training(
    start_operator: Start, own_job: PlayedJob
):
    first = start_operator("operator-0").wait_until_leading()
    own_job.create()
    own_job.train()
    pods = {pod["metadata"]["uid"] for pod in own_job.pods("train")}
    written = own_job.raw()
    first.kill()
    own_job.forget_lease()
    second = start_operator("operator-1").wait_until_leading().wait_until_ready()
    second.wait_for_resyncs()
    assert {pod["metadata"]["uid"] for pod in own_job.pods("train")} == pods
    assert own_job.raw() == written


def test_what_happens_while_no_operator_runs_is_made_good(
    start_operator: Start, own_job: PlayedJob
):
    first = start_operator("operator-0").wait_until_leading()
    own_job.create()
    own_job.train()
    first.kill()
    own_job.forget_lease()
    own_job.succeed("train")
    own_job.wait_for_condition_of_child("train", "Complete")
    for pod in own_job.pods("train"):
        own_job.delete_pod(pod)
    start_operator("operator-1").wait_until_leading()
    for stage in ("evaluate", "export"):
        own_job.run(stage)
        own_job.succeed(stage)
    status = own_job.wait_for_phase("Complete")
    assert status["restarts"] == {}
    assert [stage["attempt"] for stage in status["stages"]] == [0, 0, 0, 0, 0]


def test_a_job_is_deletable_with_the_operator_gone(start_operator: Start, own_job: PlayedJob):
    operator = start_operator().wait_until_leading()
    own_job.create()
    own_job.train()
    operator.kill()
    own_job.delete()
    own_job.wait_until_gone()


def test_an_idle_operator_with_200_finished_jobs_asks_for_nothing_and_forgets_them_with_their_end(
    start_operator: Start, bed: Bed, namespace: str
):
    for number in range(200):
        PlayedJob(bed.api, namespace, name=f"job-{number}").create().finish()
    operator = start_operator().wait_until_leading().wait_until_ready()
    wait_for("all jobs", lambda: infos(operator) == 200, every=LOOK_SECONDS)
    operator.wait_for_resyncs()
    versions, before = versions_of(bed, namespace), operator.requests()
    operator.wait_for_resyncs()
    assert operator.requests() == before
    assert versions_of(bed, namespace) == versions
    assert operator.resident_bytes() < 0.7 * memory_limit()

    bed.api.request("DELETE", jobs_of(namespace))
    wait_for("the end of all jobs", lambda: infos(operator) == 0, every=LOOK_SECONDS)
    assert [sample for sample in operator.samples() if "job" in sample.labels] == []


def memory_limit() -> int:
    """Bytes that the chart gives the operator."""
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return int(str(values["resources"]["limits"]["memory"]).removesuffix("Mi")) * 2**20


def infos(operator: OperatorProcess) -> int:
    """How many jobs its metrics tell of."""
    return round(operator.metric("pretrain_job_info"))


def jobs_of(namespace: str) -> str:
    return f"/apis/pretrain.dev/v1alpha1/namespaces/{namespace}/pretrainjobs"


def versions_of(bed: Bed, namespace: str) -> dict[str, str]:
    """The resourceVersion of every job by its name."""
    metadata = [job["metadata"] for job in bed.api.get(jobs_of(namespace))["items"]]
    return {each["name"]: each["resourceVersion"] for each in metadata}


def test_children_and_pods_are_asked_for_by_the_operators_label_alone(
    start_operator: Start, bed: Bed, namespace: str
):
    start_operator().wait_until_leading().wait_until_ready()
    account = f"system:serviceaccount:{namespace}:pretrain-operator"
    asked = [event for event in audited(bed, account) if event["verb"] in ("list", "watch")]
    kinds = {event["objectRef"]["resource"] for event in asked}
    assert kinds == {"pretrainjobs", "jobs", "pods", "services", "configmaps", "events"}
    for event in asked:
        kind, uri = event["objectRef"]["resource"], event["requestURI"]
        assert kind in ("pretrainjobs", "events") or OUR_LABEL in uri, uri
        assert event["verb"] == "watch" or "limit=" in uri, uri


def audited(bed: Bed, user: str) -> list[dict[str, Any]]:
    """All that the API server has written down of an account's requests."""
    lines = bed.audit_log.read_text().splitlines()
    return [json.loads(line) for line in lines if user in line]
