"""Replicas that end, freeze and follow each other; jobs notice nothing."""

from __future__ import annotations

from collections.abc import Callable

from pretrain_testing.operator_process import OperatorProcess
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.processes import wait_for

Start = Callable[..., OperatorProcess]
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


def test_a_leader_that_is_asked_to_end_hands_over(start_operator: Start, job: PlayedJob):
    first = start_operator("operator-0").wait_until_leading()
    second = start_operator("operator-1")
    job.create()
    job.run_until("preprocess")
    assert first.terminate() == 0
    assert "released" in first.logged()
    second.wait_until_leading()
    job.succeed("preprocess")
    job.run("train")
    job.wait_for_phase("Training")


def test_a_leader_that_was_frozen_ends_without_a_write(start_operator: Start, job: PlayedJob):
    first = start_operator("operator-0").wait_until_leading()
    second = start_operator("operator-1")
    job.create()
    job.run_until("preprocess")
    first.freeze()
    second.wait_until_leading()
    job.succeed("preprocess")
    job.run("train")
    job.wait_for_phase("Training")
    written = job.raw()
    first.thaw()
    assert first.process.wait(30) == FROZEN_TOO_LONG
    assert "may lead now" in first.logged()
    assert job.raw() == written
    trainings = [j for j in job.objects("jobs") if "-train-" in j["metadata"]["name"]]
    assert len(trainings) == 1


def test_a_job_is_not_disturbed_when_the_operator_is_killed_in_training(
    start_operator: Start, job: PlayedJob
):
    first = start_operator("operator-0").wait_until_leading()
    job.create()
    job.run_until("train")
    job.wait_for_phase("Training")
    pods = {pod["metadata"]["uid"] for pod in job.pods("train")}
    written = job.raw()
    first.kill()
    job.forget_lease()
    second = start_operator("operator-1").wait_until_leading().wait_until_ready()
    second.wait_for_resyncs()
    assert {pod["metadata"]["uid"] for pod in job.pods("train")} == pods
    assert job.raw() == written


def test_what_happens_while_no_operator_runs_is_made_good(start_operator: Start, job: PlayedJob):
    first = start_operator("operator-0").wait_until_leading()
    job.create()
    job.run_until("train")
    job.wait_for_phase("Training")
    first.kill()
    job.forget_lease()
    job.succeed("train")
    start_operator("operator-1").wait_until_leading()
    for stage in ("evaluate", "export"):
        job.run(stage)
        job.succeed(stage)
    assert job.wait_for_phase("Complete")["restarts"] == {}


def test_a_job_is_deletable_with_the_operator_gone(start_operator: Start, job: PlayedJob):
    operator = start_operator().wait_until_leading()
    job.create()
    job.run_until("train")
    operator.kill()
    job.delete()
    kinds = ("pods", "jobs", "services", "configmaps")
    wait_for("the end of all children", lambda: not any(map(job.objects, kinds)))


def test_an_idle_operator_with_200_finished_jobs_asks_for_nothing(
    start_operator: Start, job: PlayedJob
):
    jobs = [PlayedJob(job.api, job.namespace, name=f"job-{number}") for number in range(200)]
    for each in jobs:
        each.create().finish()
    operator = start_operator().wait_until_leading().wait_until_ready()
    wait_for("all jobs", lambda: operator.metric("pretrain_job_info") == 200)
    versions = [each.raw()["metadata"]["resourceVersion"] for each in jobs]
    before = operator.requests()
    operator.wait_for_resyncs(3)
    assert operator.requests() == before
    assert [each.raw()["metadata"]["resourceVersion"] for each in jobs] == versions
