"""Every second of a training is in one category, over all attempts, whatever happens to them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_api.reports import StageProgress, TrainingStatus
from pretrain_api.status import GoodputStatus
from pretrain_api.timesheet import TimeSheet
from pretrain_operator.observed import ObservedPod
from pretrain_operator.plan.goodput import earlier_attempts
from pretrain_testing.plan_simulator import Simulation, make_job
from pretrain_testing.timed_training import POLICY, TimedTraining

Act = Callable[[TimedTraining], None]
SECONDS = st.integers(0, 500)
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.builds(lambda seconds: lambda own: own.wait(seconds), SECONDS),
    st.builds(lambda seconds: lambda own: own.run(seconds), SECONDS),
    st.builds(lambda seconds: lambda own: own.train(seconds), st.integers(1, 500)),
    st.builds(lambda seconds: lambda own: own.save(seconds), SECONDS),
    st.just(TimedTraining.poll),
    st.just(TimedTraining.kill),
    st.builds(lambda on: lambda own: own.suspend(on=on), st.booleans()),
)


def check_sum(goodput: GoodputStatus) -> None:
    """The seconds are those from the beginning to the moment that they are told of."""
    assert goodput.start_time is not None
    assert goodput.time is not None
    wall = (goodput.time - goodput.start_time).total_seconds()
    assert sum(goodput.seconds.values()) == pytest.approx(wall, abs=0.01)
    assert all(spent > 0 for spent in goodput.seconds.values())
    assert goodput.ratio is None or 0 <= goodput.ratio <= 1


@settings(max_examples=60, deadline=None)
@given(st.lists(ACTS, max_size=20))
def test_whatever_happens_every_second_is_told_in_its_own_category(acts: list[Act]) -> None:
    own = TimedTraining()
    for act in acts:
        act(own)
        if own.sim.job.status.goodput is not None:
            check_sum(own.goodput)
    own.finish()

    assert own.goodput.seconds == pytest.approx({k: v for k, v in own.spent.items() if v})
    assert own.goodput.start_time == own.began
    assert own.goodput.time == own.sim.stage("train").completion_time == own.sim.now


def test_steps_made_again_are_no_progress_where_the_lost_ones_were_told() -> None:
    own = TimedTraining()
    own.wait(100)
    own.run(20)
    for _ in range(3):
        own.train(10)
    own.save(5)
    for _ in range(4):
        own.train(10)
    own.poll()
    own.train(10)
    own.kill()
    own.wait(60)
    own.run(30)
    for _ in range(6):
        own.train(10)
    own.poll()

    assert own.goodput.seconds == {
        "queued": 160,
        "init": 50,
        "step": 90,
        "recompute": 40,
        "checkpoint_stall": 5,
        "lost": 10,
    }
    assert own.goodput.ratio == pytest.approx(90 / 355, abs=1e-4)


def test_steps_are_progress_once_however_often_they_are_made_again() -> None:
    own = TimedTraining()
    for steps in (5, 2, 6):
        own.run(0)
        for _ in range(steps):
            own.train(10)
        own.poll()
        own.kill()

    assert own.goodput.seconds == {"step": 60, "recompute": 70}


def test_without_a_word_from_the_lost_attempt_what_it_did_after_its_checkpoint_is_lost() -> None:
    own = TimedTraining()
    own.run(20)
    own.train(10)
    own.save(5)
    own.train(10)
    own.kill()
    own.run(30)
    own.train(10)
    own.poll()

    assert own.goodput.seconds == {"init": 50, "step": 20, "lost": 15}


def test_a_suspension_is_no_loss() -> None:
    own = TimedTraining()
    own.run(0)
    own.train(50)
    own.save(0)
    own.suspend(on=True)
    own.wait(9000)
    own.suspend(on=False)
    own.run(50)
    own.train(100)
    own.poll()

    assert own.goodput.seconds == {"init": 50, "step": 150, "suspended": 9000}
    assert own.goodput.ratio == 0.75


def test_rank_0_that_waits_for_other_pods_is_not_queued_at_the_same_time() -> None:
    sim = Simulation(make_job(failurePolicy=POLICY))
    sim.until("preprocess")
    sim.succeed("preprocess")
    sim.wait(100)
    started = sim.now
    first = ObservedPod("first", 0, "Running", started_at=started)
    sim.change("train", pods=(first,), active=1)
    sim.wait(40)
    sim.run("train")
    sim.change("train", pods=(first, *sim.child("train").pods[1:]))
    sheet = TimeSheet(began=started, at=sim.now, seconds={"init": 40})

    sim.progress(0, time_sheet=sheet)

    assert sim.job.status.goodput is not None
    assert sim.job.status.goodput.seconds == {"queued": 100, "init": 40}


def test_training_that_was_never_seen_running_has_waited_all_the_same() -> None:
    own = TimedTraining()
    own.wait(100)
    own.sim.change(
        "train",
        pods=tuple(ObservedPod(f"pod-{i}", i, "Running", started_at=own.sim.now) for i in range(2)),
    )
    own.sim.now += timedelta(seconds=30)

    own.sim.succeed("train")

    assert own.goodput.seconds == {"queued": 100, "lost": 30}


def test_a_failed_training_counts_to_its_end() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    sheet = TimeSheet(began=sim.now, at=sim.now + timedelta(seconds=50), seconds={"step": 50})
    sim.now = sheet.at
    sim.progress(7, time_sheet=sheet)
    sim.now += timedelta(seconds=10)

    sim.fail_pod("train", 0, exit_code=64)

    goodput = sim.job.status.goodput
    assert goodput is not None
    assert goodput.seconds == {"step": 50, "lost": 10}
    assert goodput.time == sim.job.status.completion_time


@given(skew=st.integers(-3600, 3600), moved=st.integers(0, 3600))
def test_clocks_that_disagree_make_nothing_negative(skew: int, moved: int) -> None:
    own = TimedTraining()
    own.wait(100)
    own.run(10)
    own.train(50)
    assert own.rank_0 is not None
    told = own.rank_0.sheet
    for seconds in (skew, skew + moved):
        at = told.at + timedelta(seconds=seconds)
        own.sim.progress(1, time_sheet=told.model_copy(update={"at": at}))
        goodput = own.goodput
        assert min(goodput.seconds.values()) > 0
        assert goodput.time is not None
        assert goodput.time >= own.began + timedelta(seconds=100)


def test_other_stages_have_no_part_in_it() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.wait(500)
    sim.run("tokenizer")
    assert sim.job.status.goodput is None
    sim = Simulation(make_job())
    sim.until("train")
    sim.succeed("train")
    before = sim.job.status.goodput
    sim.wait(500)

    sim.run("evaluate")

    assert sim.job.status.goodput == before


def test_only_attempts_that_told_something_are_told_of() -> None:
    own = TimedTraining()
    own.wait(100)
    assert own.told.earlier is None
    own.run(10)
    own.train(5)
    own.poll()
    own.kill()

    assert own.told.earlier is not None
    assert own.told.earlier.step == 1
    assert own.told.earlier.time.seconds == {"init": 10, "step": 5}
    older = own.goodput.model_copy(update={"start_time": None, "time": None})
    assert earlier_attempts(older) is None


def test_the_last_word_of_an_attempt_counts_though_it_has_ended_since() -> None:
    own = TimedTraining()
    own.run(10)
    own.train(30)
    assert own.rank_0 is not None
    last = StageProgress(
        stage="train", training=TrainingStatus(step=1), time_sheet=own.rank_0.sheet
    )
    own.sim.observed = replace(own.sim.observed, progress=(last,))

    own.sim.fail_pod("train", 0, exit_code=71)

    assert own.goodput.seconds == {"init": 10, "step": 30}
    assert own.told.earlier is not None
    assert own.told.earlier.step == 1
