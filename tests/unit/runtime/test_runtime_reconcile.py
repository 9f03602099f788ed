"""One job, reconciled: what is written when, and how little of it."""

from __future__ import annotations

import pytest
from pretrain_api.reports import StageProgress, TrainingStatus
from pretrain_operator.progress import Followed
from pretrain_testing.fake_cluster import World


def training_at(step: int) -> Followed:
    training = TrainingStatus(step=step, max_steps=1000, loss=1.5)
    return Followed((StageProgress(stage="train", training=training),))


def test_a_new_job_gets_its_first_children_and_one_status(world: World):
    world.create()
    world.settle()
    assert world.kinds() == ["ConfigMap", "Job"]
    assert world.requests("patch status") == 1
    assert world.status["phase"] == "Pending"
    assert world.status["stages"][0]["state"] == "Running"


def test_a_whole_job_takes_at_most_eight_requests_a_stage(world: World):
    world.create()
    world.run_to_the_end()
    assert world.status["phase"] == "Complete"
    assert len(world.api.requests) <= 5 * 8, world.api.requests


def test_children_come_before_the_status_that_tells_of_them_and_go_after_it(world: World):
    world.create()
    world.run_to_the_end()
    order = world.api.requests
    assert order.index("apply Job") < order.index("patch status")
    assert order.index("delete Service") > order.index("apply Service")
    assert "patch status" in order[order.index("apply Service") : order.index("delete Service")]


def test_nothing_is_requested_for_a_job_that_has_ended(world: World):
    world.create()
    world.run_to_the_end()
    before = len(world.api.requests)
    for _ in range(5):
        world.wait(600)
    assert len(world.api.requests) == before


def test_a_suspended_job_has_one_status_and_no_children(world: World):
    world.create(suspend=True)
    world.settle()
    before = len(world.api.requests)
    world.wait(600)
    assert world.status["phase"] == "Suspended"
    assert world.requests("patch status") == 1
    assert world.kinds() == []
    assert len(world.api.requests) == before


def test_figures_that_change_all_the_time_are_written_once_in_ten_seconds(world: World):
    world.reach_training()
    world.wait(60)
    before = world.requests("patch status")
    for step in range(60):
        world.followed = training_at(step + 1)
        world.wait(1)
    assert world.requests("patch status") - before in (5, 6, 7)


def test_a_figure_that_was_held_back_is_written_when_its_time_has_come(world: World):
    world.reach_training()
    world.followed = training_at(7)
    due = world.settle()
    assert due == 10
    world.wait(due)
    assert world.status["training"]["step"] == 7


def test_pods_of_a_large_gang_that_start_one_by_one_make_few_writes(world: World):
    world.create(workers={"replicas": 64})
    world.settle()
    for stage in ("tokenizer", "preprocess"):
        world.run(stage)
        world.succeed(stage)
    before = world.requests("patch status")
    for index in range(64):
        world.run_pod("train", index)
    world.wait(10)
    assert world.status["workers"]["ready"] == 64
    assert world.requests("patch status") - before <= 3


def test_a_job_past_its_time_to_live_is_deleted(world: World):
    world.create(ttlSecondsAfterFinished=60)
    world.run_to_the_end()
    due = world.wait(10)
    assert due is not None
    assert due == pytest.approx(50)
    world.wait(due)
    assert ("PretrainJob", "roberta-zh") not in world.api.objects


def test_a_job_that_is_gone_takes_its_metrics_along(world: World):
    world.create()
    world.settle()
    assert b'job="roberta-zh"' in world.metrics.render()
    world.store.jobs.remove(world.raw)
    world.settle()
    assert b'job="roberta-zh"' not in world.metrics.render()


def test_a_restarted_operator_writes_no_figures_before_its_first_poll(world: World):
    world.reach_training()
    world.followed = training_at(3)
    world.wait(20)
    before = world.requests()
    world.followed = Followed()
    world.restart()
    world.settle()
    assert world.requests() == before
