"""Objects of a namespace and events of a job: none too many, none missing, none twice."""

from __future__ import annotations

from typing import Any

from pretrain_testing.soak.children import (
    Child,
    Told,
    child_of,
    judge_children,
    judge_events,
    told_by,
)

STAGE, INDEX = "pretrain.dev/stage", "batch.kubernetes.io/job-completion-index"


def manifest(kind: str, name: str, **labels: str) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "labels": labels}}


def workers(attempt: int) -> list[Child]:
    """The children of an attempt."""
    name = f"soak-0a1b2-train-{attempt}"
    pods = [
        manifest("Pod", f"{name}-{index}-x{attempt}", **{STAGE: "train", INDEX: str(index)})
        for index in range(2)
    ]
    return [child_of(one) for one in (manifest("Job", name), manifest("Service", name), *pods)]


def test_the_children_of_one_attempt_are_like_those_of_another() -> None:
    assert judge_children(workers(0), workers(7), when="now") == []


def test_children_that_stay_of_an_attempt_before_are_too_many() -> None:
    found = [*workers(7), *workers(6)[:1]]

    assert judge_children(workers(0), found, when="at the end") == [
        "Objects that are too many at the end: 1 Job soak-0a1b2-train-N."
    ]


def test_what_is_gone_is_missing() -> None:
    secret = child_of({"kind": "Secret", "metadata": {"name": "storage"}})

    assert judge_children([secret], [], when="at the end") == [
        "Objects that are missing at the end: 1 Secret storage."
    ]


def failed(attempt: int, count: int = 1) -> Told:
    return Told("AttemptFailed", f"Attempt {attempt} of train ended", count)


def judged(*events: Told) -> list[str]:
    return judge_events(events, attempts=3, restarts=2)


def test_each_restart_told_once_is_as_it_should_be() -> None:
    assert judged(failed(0), failed(1), Told("StageCompleted", "tokenizer", 1)) == []


def test_an_event_that_two_operators_have_told_is_told_twice() -> None:
    assert judged(failed(0), failed(0)) == [
        "The event AttemptFailed came 2 times: Attempt 0 of train ended"
    ]


def test_an_event_that_counts_on_is_told_twice() -> None:
    twice, restarts = judged(failed(0, count=3))
    assert twice.startswith("The event AttemptFailed came 3 times")
    assert restarts == "3 events AttemptFailed tell of 2 restarts."


def test_a_wait_may_come_back_with_every_attempt_but_not_more_often() -> None:
    wait = Told("Unschedulable", "no node fits", 1)

    assert judged(failed(0), failed(1), wait, wait, wait) == []
    assert judged(failed(0), failed(1), wait, wait, wait, wait) == [
        "The event Unschedulable came 4 times: no node fits"
    ]


def test_a_restart_without_an_event_is_told() -> None:
    assert judged(failed(0)) == ["1 events AttemptFailed tell of 2 restarts."]


def test_an_event_without_a_count_happened_once() -> None:
    assert told_by({"reason": "Suspended", "message": "x"}) == Told("Suspended", "x", 1)
