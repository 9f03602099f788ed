"""Children that end or go: what is told of them first, and what is made again."""

from __future__ import annotations

from typing import Any

import pytest
from pretrain_api.reports import Cause, StageReport, StageResult
from pretrain_testing.fake_cluster import World
from pretrain_testing.plan_simulator import commit


def test_a_child_that_somebody_deletes_is_applied_once_and_nothing_else_is_written(world: World):
    world.reach_training()
    world.wait(60)
    service = next(place for place in world.api.objects if place[0] == "Service")
    before = len(world.api.requests)

    world.store.services.remove(world.api.objects.pop(service))
    world.settle()
    for _ in range(5):
        world.wait(600)

    assert world.api.requests[before:] == ["apply Service", "post event"]
    assert service in world.api.objects


@pytest.mark.parametrize("at_once", [False, True], ids=["looked at", "gone before a look"])
@pytest.mark.parametrize("edit", [{"suspend": True}, {"workers": {"replicas": 4}}], ids=str)
def test_the_checkpoint_that_stopped_pods_have_saved_is_in_status_once_they_have_ended(
    world: World, edit: dict[str, Any], *, at_once: bool
):
    world.reach_training(workers={"replicas": 2})
    stopped = world.child("train")
    world.edit(**edit)
    world.settle()
    assert world.status.get("checkpoint") is None

    result = StageResult(checkpoint=commit(450))
    world.stop_pods(stopped, StageReport(stage="train", cause=Cause.PREEMPTED, result=result))
    if not at_once:
        world.settle()
    world.end_pods()

    assert world.status["checkpoint"]["step"] == 450


@pytest.mark.parametrize("pods_first", [True, False])
def test_the_commits_of_a_deleted_job_are_not_those_of_the_next_of_its_name(
    world: World, *, pods_first: bool
):
    world.reach_training()
    stopped = world.child("train")
    world.edit(suspend=True)
    world.settle()
    result = StageResult(checkpoint=commit(450))
    world.stop_pods(stopped, StageReport(stage="train", cause=Cause.PREEMPTED, result=result))
    if pods_first:
        world.end_pods()
    world.store.jobs.remove(world.raw)
    world.end_pods()
    world.create(suspend=True)
    world.settle()

    assert world.store.children_of(world.store.jobs.of(world.key)[0], ()).gone_pods == ()
    assert world.status.get("checkpoint") is None


def test_a_failed_attempt_is_told_before_its_children_go(world: World):
    world.reach_training()
    world.api.requests.clear()
    world.fail("train", exit_code=71)
    assert world.api.requests[0] == "patch status"
    assert "delete Job" in world.api.requests
    assert world.status["restarts"] == {"Infrastructure": 1}
