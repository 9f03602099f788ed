"""Gangs of any size, and what goes on around them: few writes, one cause, one restart."""

import json
from datetime import timedelta
from typing import Any

import pytest
from pretrain_api.reports import Cause, StageReport
from pretrain_api.status import Phase
from pretrain_operator.children.names import child_name
from pretrain_operator.observed import Observed, ObservedPod, Settings
from pretrain_operator.plan import plan
from pretrain_testing.plan_simulator import START, UID, Simulation, make_job

STATUS_LIMIT = 64 * 1024


def gang(workers: int = 2, **spec: Any) -> Simulation:
    """A job whose gang runs."""
    batch = {"globalBatchSize": workers * 2}
    sim = Simulation(make_job(workers={"replicas": workers}, training=batch, **spec))
    sim.until("train")
    run_all(sim, workers)
    return sim


def run_all(sim: Simulation, workers: int) -> None:
    pods = tuple(
        ObservedPod(name=f"p-{i}", index=i, phase="Running", node=f"node-{i}", started_at=sim.now)
        for i in range(workers)
    )
    sim.change("train", pods=pods, active=workers)
    sim.settle()


def test_a_thousand_workers_need_no_more_writes_than_two_and_a_small_status() -> None:
    sim = gang(1000)
    few = gang(2)
    assert sim.phase() is Phase.TRAINING
    before, before_few = sim.writes, few.writes

    for size, one in ((1000, sim), (2, few)):
        one.fail_pod("train", size - 1, exit_code=137)
        one.wait(60)
        run_all(one, size)

    assert sim.job.status.restarts == {"Infrastructure": 1}
    assert sim.writes - before == few.writes - before_few
    status = sim.job.status.model_dump_json(by_alias=True, exclude_none=True)
    assert len(status) < STATUS_LIMIT
    assert "p-999" not in status


def test_a_lost_pod_of_a_gang_costs_few_requests_whatever_its_size() -> None:
    sim = gang(128)
    created, events, writes = len(sim.created), len(sim.events), sim.writes
    deleted = 0

    sim.change_pod("train", 17, phase="Failed", exit_code=71, finished_at=sim.now)
    for _ in range(3):
        sim.now += timedelta(seconds=30)
        deleted += len(sim.plan().delete)

    requests = len(sim.created) - created + len(sim.events) - events + sim.writes - writes
    assert requests + deleted <= 10


def test_the_one_rank_that_says_why_is_believed_against_seven_that_were_seen_first() -> None:
    sim = gang(8)
    noise = StageReport(stage="train", cause=Cause.INFRASTRUCTURE, message="NCCL error: peer")
    for index in (0, 1, 2, 3, 4, 6, 7):
        sim.change_pod("train", index, phase="Failed", report=noise, finished_at=sim.now)
    sim.settle()
    assert sim.job.status.restarts == {}

    said = StageReport(stage="train", rank=5, cause=Cause.USER_ERROR, message="ValueError: no")
    later = sim.now + timedelta(seconds=5)
    sim.change_pod("train", 5, phase="Failed", report=said, finished_at=later)
    sim.wait(5)

    failed = sim.condition("Failed")
    assert failed.reason == "UserError"
    assert "Rank 5" in failed.message
    assert "ValueError: no" in failed.message
    assert "NCCL" not in failed.message
    assert sim.job.status.restarts == {}


def test_a_deleted_pod_ends_the_attempt_for_all_and_counts_once() -> None:
    sim = gang(3)
    sim.progress(450, committed=400)

    sim.change_pod("train", 1, deleting=True)
    sim.wait(30)
    assert sim.child_names("train") == []
    sim.wait(10)
    run_all(sim, 3)

    assert sim.child("train").attempt == 1
    assert sim.job.status.restarts == {"Preempted": 1}
    assert sim.job.status.attempt_start_step == 400


def test_what_a_user_got_wrong_stays_told_when_its_pods_are_gone() -> None:
    sim = gang()

    sim.report_failure("train", 1, Cause.USER_ERROR, rank=1, message="no such column: text")
    sim.wait(60)

    assert sim.observed.jobs[-1].stage != "train"
    assert sim.condition("Failed").reason == "UserError"
    assert "Rank 1" in sim.job.status.blocked_by
    assert "no such column: text" in sim.job.status.blocked_by
    assert sim.condition("Running").status == "False"
    assert sim.job.status.restarts == {}
    assert sim.stage("train").attempt == 0


def test_a_training_that_ended_while_nobody_looked_is_not_run_twice() -> None:
    sim = gang()
    created = sim.created.count("Job/roberta-zh-0a1b2-train-1")

    sim.change("train", pods=(), active=0, succeeded=2, condition="Complete", finished_at=sim.now)
    sim.wait(600)

    assert sim.stage("train").state == "Complete"
    assert sim.child("evaluate").attempt == 0
    assert sim.created.count("Job/roberta-zh-0a1b2-train-1") == created == 0
    assert sim.job.status.restarts == {}


def test_jobs_of_failed_attempts_are_deleted_once_their_cause_is_told() -> None:
    sim = gang()
    for _ in range(3):
        sim.fail_pod("train", 1, disrupted=True)
        assert not any(job.condition == "Failed" for job in sim.observed.jobs)
        sim.wait(60)
        run_all(sim, 2)

    assert sim.job.status.restarts == {"Preempted": 3}
    assert sim.child("train").attempt == 3


def test_a_newer_operator_leaves_running_attempts_as_they_are() -> None:
    sim = gang()
    newer = Settings(train_image="train:2", preprocess_image="prepare:2", labels={"team": "b"})

    made = plan(sim.job, sim.observed, sim.now, newer)
    assert (made.apply, made.delete, made.status) == ((), (), sim.job.status)

    sim.settings = newer
    sim.fail_pod("train", 1, exit_code=71)
    sim.wait(60)
    finished = [sim.stage(name) for name in ("tokenizer", "preprocess")]

    assert sim.child("train").attempt == 1
    assert [stage.state for stage in finished] == ["Complete", "Complete"]
    assert [stage.attempt for stage in finished] == [0, 0]


def test_the_next_attempt_has_a_newer_operators_template() -> None:
    sim = gang()
    sim.fail_pod("train", 1, exit_code=71)
    sim.now += timedelta(seconds=10)

    made = plan(sim.job, sim.observed, sim.now, Settings(train_image="train:2"))

    pod = made.apply[-1]["spec"]["template"]["spec"]
    assert pod["containers"][0]["image"] == "train:2"


def test_a_finished_job_stays_so_when_its_children_go_and_its_spec_is_edited() -> None:
    sim = gang()
    sim.fail_pod("train", 1, exit_code=64)
    status, created = sim.job.status, len(sim.created)

    sim.observed = Observed()
    sim.edit(failure_policy=sim.job.spec.failure_policy.model_copy(update={"restarts": []}))
    for _ in range(10):
        sim.wait(60)

    assert sim.job.status == status
    assert len(sim.created) == created
    assert sim.plan().requeue_after is None


def test_nothing_is_written_while_nothing_changes() -> None:
    sim = gang()
    sim.progress(10)
    writes = sim.writes

    for _ in range(60):
        sim.wait(10)

    assert sim.writes == writes


@pytest.mark.parametrize("manager", ["kueue.x-k8s.io/multikueue", "example.com/other"])
def test_a_job_of_another_controller_is_not_touched(manager: str) -> None:
    sim = Simulation(make_job(managedBy=manager))

    made = plan(sim.job, Observed(services=("stray",)), START, Settings())

    assert (made.apply, made.delete, made.events) == ((), (), ())
    assert made.status is sim.job.status
    assert made.requeue_after is None


def test_a_job_may_name_this_operator_as_its_controller() -> None:
    sim = Simulation(make_job(managedBy="pretrain.dev/operator"))

    sim.settle()

    assert sim.condition("Accepted").status == "True"
    assert sim.child("tokenizer").attempt == 0


@pytest.mark.parametrize("stage", ["tokenizer", "preprocess", "train", "evaluate", "export"])
def test_a_name_never_overflows_however_many_attempts_there_were(stage: Any) -> None:
    index = {"preprocess": "-99999", "train": "-4095"}.get(stage, "-0")

    for attempt in (0, 999, 100_000):
        name = child_name(job="a" * 63, uid=UID, stage=stage, attempt=attempt)
        assert len(name + index) <= 63
        assert name.endswith(f"-{stage}-{attempt}")


def test_a_status_survives_a_round_trip_through_json_in_every_field() -> None:
    sim = gang()
    sim.progress(10, committed=10)
    sim.fail_pod("train", 1, exit_code=71)
    text = sim.job.model_dump_json(by_alias=True)

    again = type(sim.job).model_validate_json(json.dumps(json.loads(text)))

    assert again.status == sim.job.status
    assert plan(again, sim.observed, sim.now, Settings()) == plan(
        sim.job, sim.observed, sim.now, Settings()
    )


def test_a_pod_that_ends_well_late_does_not_end_its_gang() -> None:
    sim = gang(3)

    sim.change_pod("train", 1, phase="Succeeded", exit_code=0, finished_at=sim.now)
    sim.settle()

    assert sim.phase() is Phase.TRAINING
