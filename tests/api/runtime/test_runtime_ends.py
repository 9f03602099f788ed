"""What ends a job and what cannot: clocks that need no event, and ends that nothing undoes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from pretrain_api.reports import STAGES
from pretrain_testing.operator_process import OperatorProcess
from pretrain_testing.played_pods import PlayedJob
from pretrain_testing.processes import wait_for

Start = Callable[..., OperatorProcess]
Raw = dict[str, Any]
USER_ERROR = 64
NEVER = "3600"
"""Seconds between polls, or resyncs, of an operator that is left to its own timers."""

DEADLINE_SECONDS = 2
LATE_SECONDS = 15
LATE_AFTER_OUTAGE_SECONDS = 30
"""How late a clock may strike."""

LONG_AGO = timedelta(hours=1)
HALF_AN_HOUR = 1800


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def ended_at(job: PlayedJob) -> datetime:
    """When status tells that a job has failed."""
    return moment(job.condition("Failed")["lastTransitionTime"])


def test_a_silent_job_runs_into_its_deadline_and_goes_when_its_time_to_live_has_passed(
    start_operator: Start, own_job: PlayedJob
):
    start_operator(
        PRETRAIN_OPERATOR_POLL_SECONDS=NEVER, PRETRAIN_OPERATOR_RESYNC_SECONDS=NEVER
    ).wait_until_leading()
    own_job.create(activeDeadlineSeconds=DEADLINE_SECONDS, ttlSecondsAfterFinished=3)
    own_job.run("tokenizer")
    began = moment(own_job.wait_for_phase("Tokenizing")["startTime"])
    status = own_job.wait_for_phase("Failed")
    assert own_job.condition("Failed")["reason"] == "DeadlineExceeded"
    seconds = (moment(status["completionTime"]) - began).total_seconds()
    assert DEADLINE_SECONDS - 1 <= seconds <= DEADLINE_SECONDS + LATE_SECONDS
    own_job.wait_until_gone()


def test_clocks_that_ran_out_while_no_operator_looked_strike_when_one_begins(
    start_operator: Start, own_job: PlayedJob
):
    first = start_operator().wait_until_leading()
    finished = PlayedJob(own_job.api, own_job.namespace, name="finished")
    finished.create(ttlSecondsAfterFinished=HALF_AN_HOUR).run("tokenizer")
    finished.succeed("tokenizer", cached=STAGES)
    finished.wait_for_phase("Complete")
    own_job.create(activeDeadlineSeconds=HALF_AN_HOUR).run("tokenizer")
    own_job.wait_for_phase("Tokenizing")
    first.kill()
    own_job.forget_lease()
    make_older(finished)
    make_older(own_job)

    start_operator("operator-1").wait_until_leading()
    own_job.wait_for_phase("Failed")
    assert own_job.condition("Failed")["reason"] == "DeadlineExceeded"
    late = ended_at(own_job) - own_job.leading_since()
    assert late <= timedelta(seconds=LATE_AFTER_OUTAGE_SECONDS)
    finished.wait_until_gone()
    wait_for("the end of the pods", lambda: own_job.objects("pods") == [])


def make_older(job: PlayedJob) -> None:
    """Have everything that its status tells have happened long ago."""
    status = job.status()
    long_ago = f"{datetime.now(UTC) - LONG_AGO:%Y-%m-%dT%H:%M:%SZ}"
    conditions = [{**c, "lastTransitionTime": long_ago} for c in status["conditions"]]
    times: Raw = {name: long_ago for name in ("startTime", "completionTime") if name in status}
    job.put_status({**times, "conditions": conditions})


def test_nothing_that_happens_to_a_job_that_has_ended_changes_its_end(
    start_operator: Start, own_job: PlayedJob
):
    first = start_operator().wait_until_leading()
    complete = PlayedJob(own_job.api, own_job.namespace, name="complete")
    failed = PlayedJob(own_job.api, own_job.namespace, name="failed")
    for job in (complete, failed):
        job.create().run("tokenizer")
    complete.succeed("tokenizer", cached=STAGES)
    failed.end(failed.pods("tokenizer")[0], exit_code=USER_ERROR)
    ends = {complete: complete.wait_for_phase("Complete"), failed: failed.wait_for_phase("Failed")}

    for job in ends:
        job.label({"team": "another"})
        job.edit(suspend=True, workers={"replicas": 4})
        job.delete_children()
    first.wait_for_resyncs()
    first.kill()
    own_job.forget_lease()
    for job in ends:
        job.edit(suspend=False)
    second = start_operator("operator-1").wait_until_leading().wait_until_ready()
    second.wait_for_resyncs()

    for job, status in ends.items():
        assert job.status() == status
        assert job.objects("jobs") == job.objects("pods") == job.objects("configmaps") == []


def test_a_job_that_is_created_anew_under_its_name_at_once_reads_nothing_of_the_old_one(
    operator: OperatorProcess, job: PlayedJob
):
    job.create().run("tokenizer")
    job.wait_for_phase("Tokenizing")
    old = job.raw()["metadata"]["uid"]
    (lingering,) = job.pods("tokenizer")
    job.hold(lingering)
    job.delete()
    job.create()

    new = job.raw()["metadata"]["uid"]
    assert new != old
    wait_for("the new job's pod", lambda: uids_of_jobs(job.objects("pods")) == {old, new})
    job.succeed_pod(lingering, "tokenizer")
    operator.wait_for_resyncs()
    status = job.status()
    assert (status["phase"], status["stage"], status["restarts"]) == ("Pending", "tokenizer", {})
    assert "startTime" not in status
    assert uids_of_jobs(job.objects("jobs")) == {new}

    job.let_go(lingering)
    wait_for("the end of the old pod", lambda: uids_of_jobs(job.objects("pods")) == {new})
    job.run("tokenizer")
    job.wait_for_phase("Tokenizing")


def uids_of_jobs(children: list[Raw]) -> set[str]:
    """Of the PretrainJobs that children belong to, those that are being deleted left out."""
    return {child["metadata"]["labels"]["pretrain.dev/job-uid"] for child in children}
