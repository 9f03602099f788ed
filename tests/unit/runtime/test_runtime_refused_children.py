"""Children and jobs that may not be: refusals, foreign jobs, specs that nobody can read."""

from __future__ import annotations

from pretrain_testing.fake_cluster import World, denied


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
