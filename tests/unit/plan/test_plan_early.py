"""A back-off ends at once when somebody says that its cause is mended."""

from __future__ import annotations

from pretrain_api.reports import Cause
from pretrain_api.status import Phase
from pretrain_operator.observed import Manifest
from pretrain_testing.plan_simulator import Simulation, make_job

BUCKET = "there is no such bucket"
DENIED = "forbidden: violates PodSecurity"
FULL = "exceeded quota: small"


def backing_off(times: int = 1) -> Simulation:
    """A job whose tokenizer waits for its next attempt, having failed some times."""
    sim = Simulation(make_job(failurePolicy={"backoff": {"initialSeconds": 300}}))
    sim.settle()
    for _ in range(times):
        sim.wait(3600)
        sim.run("tokenizer")
        sim.report_failure("tokenizer", 0, Cause.STORAGE_UNAVAILABLE, message=BUCKET)
    sim.wait(30)
    assert "starts at" in sim.job.status.blocked_by
    return sim


def told(sim: Simulation) -> list[str]:
    return [event.message for event in sim.events if event.reason == "WaitBrokenOff"]


def test_an_edit_of_the_spec_ends_it() -> None:
    sim = backing_off()

    sim.edit(active_deadline_seconds=86_400)
    sim.settle()

    assert sim.child("tokenizer").attempt == 1
    assert sim.stage("tokenizer").retry_time is None
    assert told(sim) == ["Attempt 1 of tokenizer waits no longer, as the spec was edited."]
    assert sim.job.status.restarts == {"StorageUnavailable": 1}


def test_an_edit_that_cannot_be_run_does_not_and_its_correction_does() -> None:
    sim = backing_off()
    workers = sim.job.spec.workers

    sim.edit(workers=workers.model_copy(update={"pod_template": {"spec": {"restartPolicy": "x"}}}))
    sim.settle()
    assert sim.child_names("tokenizer") == []

    sim.edit(workers=workers)
    sim.settle()
    assert sim.child("tokenizer").attempt == 1


def test_a_job_that_is_resumed_waits_no_longer_either() -> None:
    sim = backing_off()

    sim.suspend(on=True)
    sim.suspend(on=False)

    assert sim.child("tokenizer").attempt == 1


def test_the_annotation_ends_it_and_a_value_counts_once() -> None:
    sim = backing_off()

    sim.annotate(retry_now="Mon 10:00")
    sim.settle()
    assert sim.child("tokenizer").attempt == 1
    assert "as the annotation pretrain.dev/retry-now was set" in told(sim)[0]

    sim.run("tokenizer")
    sim.report_failure("tokenizer", 0, Cause.STORAGE_UNAVAILABLE, message=BUCKET)
    sim.wait(30)
    assert sim.child_names("tokenizer") == []

    sim.annotate(retry_now="Mon 10:05")
    sim.settle()
    assert sim.child("tokenizer").attempt == 2


def test_an_annotation_that_was_set_before_there_was_a_wait_ends_none() -> None:
    sim = Simulation(make_job(failurePolicy={"backoff": {"initialSeconds": 300}}))
    sim.annotate(retry_now="once")
    sim.settle()
    sim.run("tokenizer")

    sim.report_failure("tokenizer", 0, Cause.STORAGE_UNAVAILABLE, message=BUCKET)
    sim.wait(30)

    assert sim.child_names("tokenizer") == []
    assert sim.job.status.handled_retry == "once"


def test_no_budget_is_given_back() -> None:
    sim = backing_off(times=10)

    sim.annotate(retry_now="again")
    sim.settle()
    sim.run("tokenizer")
    sim.report_failure("tokenizer", 0, Cause.STORAGE_UNAVAILABLE, message=BUCKET)

    assert sim.phase() is Phase.FAILED


def test_a_job_that_has_ended_stays_as_it_ended() -> None:
    sim = Simulation(make_job())
    sim.settle()
    sim.run("tokenizer")
    sim.report_failure("tokenizer", 0, Cause.USER_ERROR, message="no such column")
    ended = sim.job.status

    sim.annotate(retry_now="again")
    sim.settle()

    assert ended.phase is Phase.FAILED
    assert sim.job.status == ended


def refusing(message: str, code: int) -> Simulation:
    """A job whose Jobs the API server refuses."""

    def refuse(manifest: Manifest) -> tuple[int, str] | None:
        return (code, message) if manifest["kind"] == "Job" else None

    sim = Simulation(make_job(), refuse=refuse)
    sim.settle()
    return sim


def test_a_quota_that_has_room_again_is_asked_at_once() -> None:
    sim = refusing(FULL, 403)
    for _ in range(10):
        sim.wait(300)
    sim.wait(1)
    sim.refuse = lambda _: None
    sim.settle()
    assert sim.child_names("tokenizer") == []

    sim.annotate(retry_now="there is room")
    sim.settle()

    assert len(sim.child_names("tokenizer")) == 1


def test_a_namespace_that_admits_now_what_it_denied_is_asked_again() -> None:
    sim = refusing(DENIED, 403)
    sim.wait(3600)
    sim.refuse = lambda _: None
    sim.settle()
    assert sim.condition("Accepted").reason == "AdmissionDenied"

    sim.annotate(retry_now="the namespace is privileged now")
    sim.settle()

    assert sim.condition("Accepted").status == "True"
    assert len(sim.child_names("tokenizer")) == 1


def test_what_is_still_refused_is_asked_once_for_each_value() -> None:
    sim = refusing(DENIED, 403)
    sim.wait(3600)
    before = sim.stage("tokenizer").attempt

    sim.annotate(retry_now="now")
    sim.settle()
    sim.wait(3600)

    assert sim.stage("tokenizer").attempt == before + 1
    assert sim.condition("Accepted").reason == "AdmissionDenied"
