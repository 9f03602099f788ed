"""What counts as active, queued or suspended time, and what a quick look at a job tells of it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pretrain_api.reports import TrainingStatus
from pretrain_api.status import Phase
from pretrain_operator.plan.progress import eta
from pretrain_testing.plan_simulator import Simulation, make_job


def gang(**spec: Any) -> Simulation:
    """A job whose gang runs but for what a test takes away."""
    sim = Simulation(make_job(**spec))
    sim.until("train")
    return sim


def test_waiting_for_gpus_is_no_active_time_and_counts_as_queued() -> None:
    sim = Simulation(make_job(activeDeadlineSeconds=600))
    sim.until("preprocess")
    sim.wait(60)
    sim.succeed("preprocess")
    sim.wait(1200)

    sim.run("train")
    sim.wait(300)

    assert sim.phase() is Phase.TRAINING
    assert sim.job.status.goodput is not None
    assert sim.job.status.goodput.seconds == {"queued": 1200}
    assert sim.job.status.active_seconds == 60


def test_active_time_adds_up_over_stages_until_the_deadline() -> None:
    sim = Simulation(make_job(activeDeadlineSeconds=600))
    sim.until("preprocess")
    sim.wait(400)
    sim.succeed("preprocess")
    sim.run("train")

    assert sim.plan().requeue_after == 200
    sim.wait(199)
    assert sim.phase() is Phase.TRAINING
    sim.wait(1)

    assert sim.condition("Failed").reason == "DeadlineExceeded"
    assert sim.child_names("train") == []


def test_suspended_time_is_neither_active_nor_queued_nor_lost() -> None:
    sim = gang(activeDeadlineSeconds=600)
    sim.wait(100)
    sim.suspend(on=True)
    sim.wait(3600)

    sim.suspend(on=False)
    sim.wait(50)
    sim.run("train")

    assert sim.job.status.active_seconds == 100
    assert sim.job.status.suspended_seconds == 3600
    assert sim.job.status.goodput is not None
    assert sim.job.status.goodput.seconds == {"suspended": 3600, "queued": 50, "lost": 100}


def test_a_job_starts_when_its_first_pod_does() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.wait(1200)

    sim.run("tokenizer")

    assert sim.job.status.start_time == sim.now


def test_a_quick_look_at_a_job_says_where_it_is_and_how_long_it_takes() -> None:
    sim = gang()
    sim.progress(120)
    training = sim.job.status.training
    assert training is not None
    progress = sim.observed.progress[0]
    figures = training.model_copy(update={"eta_seconds": 7530.0, "loss": 6.930154323577881})
    sim.observed = replace(
        sim.observed, progress=(progress.model_copy(update={"training": figures}),)
    )
    sim.settle()
    assert sim.job.status.stage == "train"
    assert sim.job.status.eta == "2h5m"
    assert sim.job.status.training is not None
    assert sim.job.status.training.loss == 6.9302

    sim.fail_pod("train", 1, exit_code=71)
    assert sim.job.status.restart_count == 1
    assert sim.job.status.eta == ""


def test_a_new_job_is_in_its_first_stage() -> None:
    sim = Simulation(make_job())

    sim.settle()

    assert sim.job.status.stage == "tokenizer"
    assert sim.job.status.eta == ""


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, ""),
        (0, "0s"),
        (59.4, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (7200, "2h"),
        (7530, "2h5m"),
        (90_000, "1d1h"),
        (10_000_000, "115d17h"),
    ],
)
def test_the_time_that_remains_is_told_in_two_units_at_most(
    seconds: float | None, text: str
) -> None:
    assert eta(TrainingStatus(eta_seconds=seconds)) == text
    assert eta(None) == ""


def test_a_complete_job_is_in_no_stage_and_a_failed_one_in_that_which_failed() -> None:
    complete, failed = Simulation(make_job()), gang()
    complete.until("export")

    complete.succeed("export")
    failed.fail_pod("train", 1, exit_code=64)

    assert complete.job.status.stage is None
    assert failed.job.status.stage == "train"


def test_a_job_was_complete_when_its_last_stage_ended_not_when_that_was_noticed() -> None:
    sim = Simulation(make_job(ttlSecondsAfterFinished=60))
    sim.until("export")
    ended = sim.now
    sim.now += timedelta(hours=1)
    sim.change("export", condition="Complete", succeeded=1, finished_at=ended)

    sim.settle()

    assert sim.job.status.completion_time == ended
    assert sim.plan().expired
