"""Raw children become what the plan reads."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageName
from pretrain_operator.observe import (
    Children,
    FailedCreate,
    PodFacts,
    forget,
    observed_of,
    remember,
)
from pretrain_operator.observed import ObservedJob, Refusal
from pretrain_testing.plan_simulator import START, Simulation, make_job
from pretrain_testing.raw_children import condition, failed_create, raw_job, raw_pod

QUOTA = "exceeded quota: gpus, requested: gpu=2, used: gpu=8, limited: gpu=8"


def running(stage: StageName = "train") -> PretrainJob:
    """A job whose status says that a stage runs."""
    sim = Simulation(make_job())
    sim.until(stage)
    return sim.job


def pods_of(*raws: dict[str, Any]) -> tuple[PodFacts, ...]:
    return tuple(facts for facts in map(PodFacts.of, raws) if facts is not None)


def events_of(*raws: dict[str, Any]) -> tuple[FailedCreate, ...]:
    return tuple(event for event in map(FailedCreate.of, raws) if event is not None)


def job_of(children: Children) -> ObservedJob:
    (job,) = observed_of(running(), children).jobs
    return job


def test_a_child_job_is_read_with_its_pods_in_the_order_of_their_indexes() -> None:
    raw = raw_job(active=2, ready=2)

    job = job_of(Children(jobs=(raw,), pods=pods_of(raw_pod(1), raw_pod(0))))

    assert (job.stage, job.attempt, job.completions, job.active) == ("train", 0, 2, 2)
    assert job.created_at == datetime(2026, 1, 1, tzinfo=UTC)
    assert [pod.index for pod in job.pods] == [0, 1]
    assert job.condition is None


@pytest.mark.parametrize(
    ("types", "expected"),
    [
        (["SuccessCriteriaMet"], "SuccessCriteriaMet"),
        (["SuccessCriteriaMet", "Complete"], "Complete"),
        (["FailureTarget"], "FailureTarget"),
        (["FailureTarget", "Failed"], "Failed"),
        (["Suspended"], "Suspended"),
    ],
)
def test_of_several_conditions_the_final_one_counts(types: list[str], expected: str) -> None:
    raw = raw_job(conditions=[condition(t, reason=f"{t}Reason", message=f"{t}.") for t in types])

    job = job_of(Children(jobs=(raw,)))

    assert job.condition == expected
    assert (job.reason, job.message) == (f"{expected}Reason", f"{expected}.")
    assert (job.finished_at is not None) == (expected in {"Complete", "Failed"})


def test_a_condition_that_does_not_hold_any_more_does_not_count() -> None:
    raw = raw_job(conditions=[condition("Suspended", "False")])

    assert job_of(Children(jobs=(raw,))).condition is None


def test_children_of_a_deleted_job_of_the_same_name_are_left_out() -> None:
    raw = raw_job(uid="another")
    children = Children(jobs=(raw,), pods=pods_of(raw_pod(uid="another")))

    assert observed_of(running(), children).jobs == ()


def test_a_job_that_is_gone_while_its_pods_live_is_being_deleted() -> None:
    job = job_of(Children(pods=pods_of(raw_pod(0), raw_pod(1))))

    assert job.deleting
    assert job.name == "roberta-zh-0a1b2-train-0"
    assert len(job.pods) == 2


def test_a_pod_that_is_seen_before_its_new_job_is_no_sign_of_a_deleted_one() -> None:
    sim = Simulation(make_job())
    sim.until("preprocess")
    sim.succeed("preprocess")
    assert sim.stage("train").state == "Running"
    unseen = sim.job.status.model_copy(
        update={
            "stages": [
                stage.model_copy(update={"state": "Pending"}) if stage.name == "train" else stage
                for stage in sim.job.status.stages
            ]
        }
    )
    job = sim.job.model_copy(update={"status": unseen})

    assert observed_of(job, Children(pods=pods_of(raw_pod(0)))).jobs == ()


def test_pods_of_an_older_attempt_are_told_as_being_deleted() -> None:
    sim = Simulation(make_job())
    sim.until("train")
    sim.fail_pod("train", 1, exit_code=71)
    assert sim.stage("train").attempt == 1

    (old,) = observed_of(sim.job, Children(pods=pods_of(raw_pod(0, attempt=0)))).jobs

    assert (old.attempt, old.deleting) == (0, True)


def test_why_a_pod_could_not_be_created_is_on_its_job_without_the_pods_random_name() -> None:
    raw = raw_job()
    events = events_of(
        failed_create(f'Error creating: pods "a-0-x7" is forbidden: {QUOTA}', job=raw),
        failed_create("older", job=raw, at="2026-01-01T00:01:00Z"),
        failed_create("of another", job=raw_job(attempt=1)),
    )

    job = job_of(Children(jobs=(raw,), failed_creates=events))

    assert job.pods_refused == f"forbidden: {QUOTA}"


def test_events_that_were_combined_read_like_single_ones() -> None:
    (event,) = events_of(
        failed_create(
            f'(combined from similar events): Error creating: pods "a-0-x7" is forbidden: {QUOTA}',
            job=raw_job(),
        )
    )

    assert event.message == f"forbidden: {QUOTA}"


def test_an_invalid_pod_is_told_without_its_name_but_with_the_path() -> None:
    text = 'Error creating: Pod "a-0-x7" is invalid: spec.containers[0].image: Required value'
    (event,) = events_of(failed_create(text, job=raw_job()))

    assert event.message == "Pod is invalid: spec.containers[0].image: Required value"


def test_a_refusal_is_out_of_date_once_a_pod_was_created_after_it() -> None:
    raw = raw_job()
    events = events_of(failed_create(QUOTA, job=raw, at="2025-12-31T23:59:00Z"))

    job = job_of(Children(jobs=(raw,), pods=pods_of(raw_pod()), failed_creates=events))

    assert job.pods_refused == ""


def test_the_last_time_of_an_event_is_found_wherever_it_is_written() -> None:
    raw = failed_create(QUOTA, job=raw_job(), at="")
    last = "2026-01-01T00:05:00.123456Z"
    series = {**raw, "series": {"lastObservedTime": last}}
    fresh = {**raw, "lastTimestamp": None, "eventTime": last}

    times = {event.at for event in events_of(series, fresh)}

    assert times == {datetime.fromisoformat(last)}


@pytest.mark.parametrize("fields", [{"reason": "SuccessfulCreate"}, {"involvedObject": {}}])
def test_other_events_are_passed_over(fields: dict[str, Any]) -> None:
    assert FailedCreate.of({**failed_create("text", job=raw_job()), **fields}) is None


def refusal(generation: int = 1, **fields: Any) -> Refusal:
    values = {"stage": "train", "attempt": 0, "kind": "Job", "code": 403, "message": "no"}
    return Refusal(**{**values, "generation": generation, "at": START, **fields})


def test_refusals_of_the_same_child_count_on_and_those_of_another_begin_anew() -> None:
    later = START + timedelta(seconds=10)
    known = remember((), refusal())

    known = remember(known, refusal(at=later))
    known = remember(known, refusal(kind="Service"))

    assert [(r.kind, r.count, r.at) for r in known] == [("Job", 2, later), ("Service", 1, START)]


def test_an_edited_spec_starts_the_count_anew() -> None:
    (known,) = remember(remember((), refusal()), refusal(generation=2))

    assert (known.generation, known.count) == (2, 1)


def test_a_child_that_was_taken_after_all_is_no_refusal_any_more() -> None:
    known = remember(remember((), refusal()), refusal(kind="Service"))

    left = forget(known, stage="train", attempt=0, kind="Job")

    assert [r.kind for r in left] == ["Service"]
    assert forget(left, stage="train", attempt=1, kind="Service") == left
