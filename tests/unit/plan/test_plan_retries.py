"""Attempts that fail: what is told of them, and how long the next one waits."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from pretrain_api.status import Phase
from pretrain_operator.observed import ObservedPod
from pretrain_testing.plan_simulator import Simulation, commit, make_job


def training(**spec: Any) -> Simulation:
    """A job whose gang runs."""
    sim = Simulation(make_job(**spec))
    sim.until("train")
    return sim


def restart(sim: Simulation, **pod: object) -> None:
    """One rank is lost, and the next attempt runs if there is one."""
    sim.fail_pod("train", 1, **pod)
    sim.wait(3600)
    if sim.phase() is not Phase.FAILED:
        sim.run("train")


def test_a_lost_rank_ends_the_gang_and_the_next_attempt_has_fresh_names() -> None:
    sim = training()

    sim.fail_pod("train", 1, exit_code=137, signal=9)
    assert [job.stage for job in sim.observed.jobs] == ["tokenizer", "preprocess"]
    assert sim.services() == []
    sim.wait(10)

    assert sim.child("train").name == "roberta-zh-0a1b2-train-1"
    assert sim.services() == ["roberta-zh-0a1b2-train-1"]
    assert sim.job.status.restarts == {"Infrastructure": 1}


def test_the_cause_is_in_status_before_the_children_that_show_it_go() -> None:
    sim = training()
    sim.change_pod("train", 1, phase="Failed", exit_code=64, finished_at=sim.now)

    made = sim.plan()

    assert [child.name for child in made.delete if child.kind == "Job"] == [
        "roberta-zh-0a1b2-train-0"
    ]
    assert made.status.phase is Phase.FAILED


def test_a_failure_whose_status_was_not_stored_is_counted_once() -> None:
    sim = training()
    before = sim.job
    seen = sim.observed
    sim.fail_pod("train", 1, exit_code=71)
    failed = replace(sim.observed, jobs=seen.jobs)
    sim.job, sim.observed = before, failed
    sim.fail_pod("train", 1, exit_code=71)

    assert sim.job.status.restarts == {"Infrastructure": 1}


def test_a_whole_gang_lost_in_one_second_is_one_restart() -> None:
    sim = training(workers={"replicas": 32})
    for index in range(30):
        sim.change_pod("train", index, phase="Failed", exit_code=137, finished_at=sim.now)

    sim.fail_pod("train", 30, exit_code=137)

    assert sim.job.status.restarts == {"Infrastructure": 1}
    assert sim.stage("train").attempt == 1


def test_the_next_attempt_waits_for_its_time() -> None:
    sim = training(failurePolicy={"backoff": {"initialSeconds": 20}})

    sim.fail_pod("train", 1, exit_code=71)
    sim.wait(19)
    assert sim.child_names("train") == []
    assert "20" in sim.job.status.blocked_by
    made = sim.plan()
    assert made.requeue_after == 1

    sim.wait(1)
    assert sim.child("train").attempt == 1
    assert sim.stage("train").retry_time is None


def test_waits_double_up_to_the_maximum() -> None:
    sim = training(failurePolicy={"backoff": {"initialSeconds": 10, "maximumSeconds": 35}})
    waits = []
    for step in range(1, 5):
        sim.progress(step * 10, committed=step * 10)
        sim.fail_pod("train", 1, exit_code=71)
        retry_time = sim.stage("train").retry_time
        assert retry_time is not None
        waits.append((retry_time - sim.now).total_seconds())
        sim.wait(waits[-1])
        sim.run("train")

    assert waits == [10, 20, 35, 35]


def test_the_wait_counts_from_the_attempts_end_not_from_when_it_was_noticed() -> None:
    sim = training()
    ended = sim.now
    sim.now += timedelta(hours=1)

    sim.fail_pod("train", 1, exit_code=71, finished_at=ended)

    assert sim.child("train").attempt == 1


def test_the_next_attempt_waits_for_pods_that_may_be_saving_but_not_for_ever() -> None:
    sim = training()
    stuck = sim.child("train")
    sim.change_pod("train", 1, phase="Running", disrupted=True, deleting=True)
    sim.settle()
    ghost = ObservedPod(name="g", index=1, phase="Running", deleting=True)
    lost = replace(stuck, deleting=True, pods=(ghost,))
    sim.observed = replace(sim.observed, jobs=(*sim.observed.jobs, lost))

    sim.wait(10)
    assert sim.stage("train").attempt == 1
    assert "ending" in sim.job.status.blocked_by

    sim.wait(120)
    assert sim.child("train").attempt == 1


def test_the_checkpoint_in_status_survives_a_restart_and_never_goes_back() -> None:
    sim = training()
    sim.progress(450, committed=400)

    restart(sim, exit_code=71)
    sim.progress(401, committed=200)

    assert sim.job.status.checkpoint == commit(400)


def test_a_job_that_vanished_is_an_infrastructure_failure() -> None:
    sim = training()
    jobs = [job for job in sim.observed.jobs if job.stage != "train"]
    sim.observed = replace(sim.observed, jobs=tuple(jobs))

    sim.settle()

    assert sim.job.status.restarts == {"Infrastructure": 1}


def test_a_frozen_step_is_a_hang() -> None:
    sim = training(failurePolicy={"hang": {"timeoutSeconds": 600}})
    sim.progress(10)

    sim.wait(614)
    assert sim.job.status.restarts == {}
    made = sim.plan()
    assert made.requeue_after == 1
    sim.wait(1)

    assert sim.job.status.restarts == {"Hang": 1}
    assert [job.stage for job in sim.observed.jobs] == ["tokenizer", "preprocess"]


def test_no_answer_from_rank_0_is_no_hang() -> None:
    sim = training(failurePolicy={"hang": {"timeoutSeconds": 600}})
    sim.progress(10)
    sim.observed = replace(sim.observed, stepped_at=None)

    sim.wait(3600)

    assert sim.job.status.restarts == {}
    assert sim.job.status.training is not None
    assert sim.job.status.training.step == 10


def test_an_image_that_does_not_come_costs_an_attempt_only_after_a_while() -> None:
    sim = training()
    sim.change_pod(
        "train", 1, phase="Pending", reason="ImagePullBackOff", message="manifest unknown"
    )
    sim.wait(120)
    assert sim.job.status.restarts == {}
    assert "manifest unknown" in sim.job.status.blocked_by
    assert "rank 1" in sim.job.status.blocked_by.lower()

    sim.wait(480)

    assert sim.job.status.restarts == {"ImagePull": 1}


def test_every_failed_attempt_is_told_once() -> None:
    sim = training()

    restart(sim, exit_code=71, message="NCCL error")
    told = [event for event in sim.events if event.reason == "AttemptFailed"]

    assert len(told) == 1
    assert told[0].type == "Warning"
    assert "Attempt 0 of train ended with Infrastructure" in told[0].message
    assert "NCCL error" in told[0].message
