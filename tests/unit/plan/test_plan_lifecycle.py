"""Suspension, refusal, deletion, and status that never changes again."""

from dataclasses import replace
from typing import Any

import pytest
from pretrain_api.job import PretrainJob
from pretrain_api.status import Phase
from pretrain_operator.observed import Observed, Settings
from pretrain_operator.plan import plan
from pretrain_testing.plan_simulator import START, Simulation, commit, make_job, tokenizer_result

EVERYTHING_GONE = Observed()


def training(**spec: Any) -> Simulation:
    sim = Simulation(make_job(**spec))
    sim.until("train")
    return sim


def test_a_job_that_is_suspended_from_the_start_has_no_children_and_one_write() -> None:
    sim = Simulation(make_job(suspend=True))

    sim.settle()
    made = sim.plan()

    assert sim.created == []
    assert sim.phase() is Phase.SUSPENDED
    assert sim.writes == 1
    assert made.requeue_after is None


def test_suspending_a_running_job_leaves_no_children_and_uses_no_budget() -> None:
    sim = training()
    sim.progress(450, committed=400)

    sim.suspend(on=True)

    assert sim.observed.jobs == ()
    assert sim.services() == []
    assert sim.observed.config_maps == ()
    assert sim.job.status.restarts == {}
    assert sim.condition("Suspended").status == "True"
    assert sim.job.status.checkpoint == commit(400)


def test_a_resumed_job_goes_on_with_the_next_attempt_of_the_same_stage() -> None:
    sim = training()
    sim.suspend(on=True)
    sim.wait(3600)

    sim.suspend(on=False)

    assert sim.child("train").attempt == 1
    assert sim.job.status.restarts == {}
    assert sim.job.status.no_progress_attempts == 0
    assert sim.condition("Suspended").status == "False"
    assert sim.event_reasons().count("Suspended") == 1
    assert sim.event_reasons().count("Resumed") == 1


def test_a_resumed_job_does_not_wait_when_no_pod_is_left() -> None:
    sim = training()
    sim.suspend(on=True)

    sim.suspend(on=False)

    assert sim.child("train").attempt == 1


def test_a_stage_that_succeeds_while_the_job_is_suspended_stays_complete() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.run("tokenizer")
    sim.edit(suspend=True)

    sim.succeed("tokenizer", tokenizer_result())

    assert sim.stage("tokenizer").state == "Complete"
    assert sim.phase() is Phase.SUSPENDED
    assert sim.child_names("preprocess") == []


def test_a_failure_in_a_suspended_job_costs_nothing() -> None:
    sim = training()
    sim.edit(suspend=True)

    sim.fail_pod("train", 1, exit_code=75)

    assert sim.job.status.restarts == {}
    assert sim.stage("train").attempt == 1


def completed() -> Simulation:
    sim = Simulation(make_job())
    sim.until("export")
    sim.succeed("export")
    return sim


def failed() -> Simulation:
    sim = training()
    sim.fail_pod("train", 1, exit_code=64)
    return sim


@pytest.mark.parametrize("finished", [completed, failed])
def test_a_terminal_status_never_changes(finished: object) -> None:
    sim = finished()  # type: ignore[operator]
    status, created = sim.job.status, list(sim.created)

    sim.wait(3600)
    sim.observed = EVERYTHING_GONE
    sim.edit(suspend=True)
    sim.wait(3600)
    sim.edit(suspend=False, active_deadline_seconds=1)
    sim.wait(3600)

    assert sim.job.status == status
    assert sim.created == created


def test_children_that_outlive_a_failed_job_are_deleted() -> None:
    sim = training()
    children = sim.observed
    sim.fail_pod("train", 1, exit_code=64)

    sim.observed = children
    made = sim.plan()

    assert {child.name for child in made.delete} == {"roberta-zh-0a1b2-train-0"}
    assert {child.kind for child in made.delete} == {"Job", "Service", "ConfigMap"}


def test_a_spec_that_cannot_work_fails_with_every_reason_and_no_child() -> None:
    job = make_job(
        training={"globalBatchSize": 7, "maxSteps": 10},
        workers={"replicas": 2, "podTemplate": {"spec": {"restartPolicy": "OnFailure"}}},
    )
    sim = Simulation(job)

    sim.settle()

    assert sim.phase() is Phase.FAILED
    assert sim.condition("Accepted").status == "False"
    failed = sim.condition("Failed")
    assert failed.reason == "UserError"
    assert "spec.workers.podTemplate.spec.restartPolicy" in failed.message
    assert "globalBatchSize" in failed.message
    assert sim.created == []


def test_a_job_without_any_storage_is_refused() -> None:
    data = make_job().model_dump(mode="json", by_alias=True, exclude_unset=True)
    del data["spec"]["storage"]
    sim = Simulation(PretrainJob.model_validate(data))

    sim.settle()

    assert "spec.storage" in sim.condition("Failed").message


def test_a_spec_that_was_accepted_is_not_judged_again() -> None:
    sim = training()
    condition = sim.condition("Accepted")

    sim.wait(60)

    assert sim.condition("Accepted") == condition
    assert condition.observed_generation == 1


def test_a_bad_edit_does_not_end_what_runs_and_a_good_one_mends_it() -> None:
    sim = training()
    good = sim.job.spec.workers
    bad = good.model_copy(update={"pod_template": {"spec": []}})

    sim.edit(workers=bad)
    sim.settle()
    assert sim.condition("Accepted").status == "False"
    assert sim.phase() is Phase.TRAINING

    sim.fail_pod("train", 1, exit_code=71)
    sim.wait(60)
    assert "spec.workers.podTemplate.spec" in sim.job.status.blocked_by
    assert sim.child_names("train") == []

    sim.edit(workers=good)
    sim.settle()
    assert sim.condition("Accepted").status == "True"
    assert sim.child("train").attempt == 1


def test_a_bad_edit_is_one_event_with_what_is_wrong() -> None:
    sim = training()
    good = sim.job.spec.workers
    bad = good.model_copy(update={"pod_template": {"spec": {"hostNetwork": True}}})

    sim.edit(workers=bad)
    made = sim.plan()
    assert [(event.type, event.reason) for event in made.events] == [("Warning", "EditRefused")]
    assert "spec.workers.podTemplate.spec.hostNetwork" in made.events[0].message

    sim.settle()
    sim.wait(600)
    sim.edit(workers=bad, active_deadline_seconds=9000)
    sim.settle()
    assert sim.event_reasons().count("EditRefused") == 1

    sim.edit(workers=good)
    sim.settle()
    sim.edit(workers=bad)
    sim.settle()
    assert sim.event_reasons().count("EditRefused") == 2


@pytest.mark.parametrize("replicas", [1, 4])
def test_another_number_of_workers_goes_on_in_a_new_attempt_and_uses_no_budget(
    replicas: int,
) -> None:
    sim = training()
    sim.progress(10, committed=10)
    old = sim.child("train")

    _resize(sim, replicas)
    made = sim.plan()

    assert [event.reason for event in made.events] == ["Resized"]
    assert f"the spec {replicas}" in made.events[0].message
    assert old.name in {child.name for child in made.delete}
    assert not made.apply
    sim.settle()
    new = sim.child("train")
    assert (new.attempt, new.completions, sim.stage("train").attempt) == (1, replicas, 1)
    assert sim.job.status.restarts == {}
    sim.run("train")
    sim.settle()
    assert sim.stage("train").total == replicas
    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.attempt_start_step == 10


def test_a_size_that_the_global_batch_cannot_be_divided_by_is_refused_and_changes_nothing() -> None:
    sim = training()

    _resize(sim, 3)
    sim.settle()

    assert sim.condition("Accepted").status == "False"
    assert "spec.training.globalBatchSize" in sim.condition("Accepted").message
    assert sim.stage("train").attempt == 0
    assert sim.phase() is Phase.TRAINING


def test_a_suspended_training_comes_back_with_the_edited_number_of_workers() -> None:
    sim = training()

    sim.suspend(on=True)
    _resize(sim, 1)
    sim.suspend(on=False)
    sim.run("train")

    assert sim.child("train").completions == sim.stage("train").total == 1
    assert sim.event_reasons().count("Resized") == 0
    assert sim.job.status.restarts == {}


def test_training_that_ends_is_not_begun_anew_for_another_size() -> None:
    sim = training()
    sim.change("train", succeeded=1)

    _resize(sim, 4)
    sim.settle()

    assert sim.stage("train").attempt == 0


def _resize(sim: Simulation, replicas: int) -> None:
    sim.edit(workers=sim.job.spec.workers.model_copy(update={"replicas": replicas}))


def test_the_number_of_workers_is_free_until_training_begins() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")

    sim.edit(workers=sim.job.spec.workers.model_copy(update={"replicas": 4}))
    sim.until("train")

    assert sim.condition("Accepted").status == "True"
    assert sim.child("train").completions == 4
    assert sim.stage("train").total == 4


def test_a_transition_time_moves_only_with_its_status() -> None:
    sim = training()
    before = sim.condition("Running")

    sim.wait(10)
    sim.progress(100)
    assert sim.condition("Running").last_transition_time == before.last_transition_time

    sim.wait(10)
    sim.fail_pod("train", 1, exit_code=71)
    assert sim.condition("Running").last_transition_time == sim.now


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    sim = training()
    metadata = sim.job.metadata.model_copy(update={"deletion_timestamp": START})
    sim.job = sim.job.model_copy(update={"metadata": metadata})

    made = plan(sim.job, replace(sim.observed, jobs=()), sim.now, Settings())

    assert made.apply == ()
    assert made.delete == ()
    assert made.events == ()
    assert made.status == sim.job.status


def test_a_plan_that_finds_nothing_new_keeps_the_stages_and_conditions_that_there_are() -> None:
    sim = training()
    before = sim.job.status

    status = sim.plan().status

    for old, new in ((before.conditions, status.conditions), (before.stages, status.stages)):
        assert list(map(id, new)) == list(map(id, old))
