"""One job, reconciled: what is written when, and how little of it."""

from __future__ import annotations

from typing import Any

import pytest
from pretrain_api.reports import Cause, StageProgress, StageReport, StageResult, TrainingStatus
from pretrain_operator.errors import ApiError, ApiUnreachableError
from pretrain_operator.progress import Followed
from pretrain_testing.fake_cluster import World, denied
from pretrain_testing.plan_simulator import commit


def training_at(step: int) -> Followed:
    training = TrainingStatus(step=step, max_steps=1000, loss=1.5)
    return Followed((StageProgress(stage="train", training=training),))


@pytest.fixture
def world() -> World:
    return World()


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


def test_a_child_that_somebody_deletes_is_applied_once_and_nothing_else_is_written(world: World):
    world.create()
    world.settle()
    for stage in ("tokenizer", "preprocess"):
        world.run(stage)
        world.succeed(stage)
    world.run("train")
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
    world.create(workers={"replicas": 2})
    world.settle()
    for stage in ("tokenizer", "preprocess"):
        world.run(stage)
        world.succeed(stage)
    world.run("train")
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
    world.create()
    world.settle()
    for stage in ("tokenizer", "preprocess"):
        world.run(stage)
        world.succeed(stage)
    world.run("train")
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


def test_figures_that_change_all_the_time_are_written_once_in_ten_seconds(world: World):
    world.create()
    world.settle()
    for stage in ("tokenizer", "preprocess"):
        world.run(stage)
        world.succeed(stage)
    world.run("train")
    world.wait(60)
    before = world.requests("patch status")
    for step in range(60):
        world.followed = training_at(step + 1)
        world.wait(1)
    assert world.requests("patch status") - before in (5, 6, 7)


def test_a_figure_that_was_held_back_is_written_when_its_time_has_come(world: World):
    world.create()
    world.settle()
    for stage in ("tokenizer", "preprocess"):
        world.run(stage)
        world.succeed(stage)
    world.run("train")
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


def test_a_crash_between_any_two_requests_is_made_good_by_the_next_process():
    undisturbed = World()
    undisturbed.create()
    undisturbed.run_to_the_end()
    for crash_at in range(len(undisturbed.api.requests)):
        world = World()
        world.create()
        crash_before(world, crash_at)
        world.run_to_the_end()
        assert world.status["phase"] == "Complete", crash_at
        assert world.status["restarts"] == {}, crash_at
        assert world.requests("apply Job") <= undisturbed.requests("apply Job") + 1, crash_at


def crash_before(world: World, number: int) -> None:
    """The operator dies before its request of that number, and another process takes over."""
    note = world.api._note

    def note_or_die(request: str) -> None:
        if len(world.api.requests) == number and not died:
            died.append(number)
            raise ApiUnreachableError("killed")
        note(request)

    died: list[int] = []
    world.api._note = note_or_die  # type: ignore[method-assign]
    reconcile = world.reconcile

    def reconcile_or_restart() -> float | None:
        try:
            return reconcile()
        except ApiUnreachableError:
            world.restart()
            return reconcile()

    world.reconcile = reconcile_or_restart  # type: ignore[method-assign]


def test_a_refused_child_leaves_nothing_behind_and_an_edit_mends_it(world: World):
    message = 'Job.batch "x" is invalid: spec.template.spec.containers[0].resources: Required value'
    world.api.refuse = lambda child: denied(422, message) if child["kind"] == "Job" else None
    world.create()
    world.settle()
    accepted = world.condition("Accepted")
    assert (accepted["status"], accepted["reason"]) == ("False", "AdmissionDenied")
    assert "spec.template.spec.containers[0].resources" in accepted["message"]
    assert world.kinds() == []
    before = len(world.api.requests)
    world.wait(3600)
    assert len(world.api.requests) == before

    world.api.refuse = lambda _: None
    world.edit(preprocess={"parallelism": 2})
    world.settle()
    assert world.condition("Accepted")["status"] == "True"
    assert world.kinds() == ["ConfigMap", "Job"]


def test_a_quota_is_asked_again_by_the_clock_until_it_has_room(world: World):
    full = denied(403, 'services "x" is forbidden: exceeded quota: small, requested: count/jobs=1')
    world.api.refuse = lambda child: full if child["kind"] == "Job" else None
    world.create()
    due = world.settle()
    assert due is not None
    assert "quota" in world.status["blockedBy"]
    for _ in range(12):
        due = world.wait(due)
        assert due is not None
        assert due <= 300
    world.api.refuse = lambda _: None
    world.wait(due)
    assert "Job" in world.kinds()


def test_a_child_that_is_there_though_no_watch_has_told_is_not_refused(world: World):
    immutable = denied(422, "spec.template: Invalid value: field is immutable")
    world.api.refuse = lambda child: immutable if child["kind"] == "Job" else None
    world.create()
    assert world.reconcile() == 1.0
    assert world.requests("patch status") == 0


def test_a_namespace_that_is_being_deleted_is_left_alone(world: World):
    ends = denied(403, "it is being terminated", causes=[{"reason": "NamespaceTerminating"}])
    world.api.refuse = lambda _: ends
    world.create()
    assert world.settle() is None
    assert world.requests("patch status") == 0


def test_a_job_that_another_controller_runs_is_not_touched(world: World):
    world.create(managedBy="kueue.x-k8s.io/multikueue")
    world.settle()
    world.wait(600)
    assert world.api.requests == []


def test_a_spec_that_nobody_can_read_fails_the_job_once(world: World):
    world.create_raw({"corpus": 7, "fromTheFuture": True})
    world.settle()
    world.wait(600)
    assert world.status["phase"] == "Failed"
    assert world.condition("Accepted")["status"] == "False"
    assert "spec.corpus" in world.condition("Failed")["message"]
    assert world.requests() == 1


def test_a_job_past_its_time_to_live_is_deleted(world: World):
    world.create(ttlSecondsAfterFinished=60)
    world.run_to_the_end()
    due = world.wait(10)
    assert due is not None
    assert due == pytest.approx(50)
    world.wait(due)
    assert ("PretrainJob", "roberta-zh") not in world.api.objects


def test_a_status_that_somebody_else_wrote_meanwhile_is_not_overwritten(world: World):
    world.create()

    def edit_meanwhile() -> None:
        world.api.put(world.raw)
        world.api.before_write = lambda: None

    world.api.before_write = edit_meanwhile
    with pytest.raises(ApiError) as conflict:
        world.reconcile()
    assert conflict.value.is_conflict
    assert not world.raw["status"]


def test_a_failed_attempt_is_told_before_its_children_go(world: World):
    world.create()
    world.settle()
    for stage in ("tokenizer", "preprocess"):
        world.run(stage)
        world.succeed(stage)
    world.run("train")
    world.api.requests.clear()
    world.fail("train", exit_code=71)
    assert world.api.requests[0] == "patch status"
    assert "delete Job" in world.api.requests
    assert world.status["restarts"] == {"Infrastructure": 1}


def test_an_annotation_that_asks_for_a_try_is_seen_at_once(world: World):
    world.create(failurePolicy={"backoff": {"initialSeconds": 300}})
    world.settle()
    world.run("tokenizer")
    world.fail("tokenizer", exit_code=69)
    world.wait(60)
    assert world.kinds() == []

    world.annotate(retry_now="mended")
    assert world.woken
    world.settle()

    assert world.kinds() == ["ConfigMap", "Job"]
    assert world.status["handledRetry"] == "mended"


def test_events_are_lost_rather_than_repeated(world: World):
    async def fail(event):
        raise ApiUnreachableError("no answer")

    world.api.post_event = fail  # type: ignore[method-assign]
    world.create()
    world.run_to_the_end()
    assert world.status["phase"] == "Complete"


def test_a_job_that_is_gone_takes_its_metrics_along(world: World):
    world.create()
    world.settle()
    assert b'job="roberta-zh"' in world.metrics.render()
    world.store.jobs.remove(world.raw)
    world.settle()
    assert b'job="roberta-zh"' not in world.metrics.render()


def test_a_restarted_operator_writes_no_figures_before_its_first_poll(world: World):
    world.create()
    world.settle()
    for stage in ("tokenizer", "preprocess"):
        world.run(stage)
        world.succeed(stage)
    world.run("train")
    world.followed = training_at(3)
    world.wait(20)
    before = world.requests()
    world.followed = Followed()
    world.restart()
    world.settle()
    assert world.requests() == before
