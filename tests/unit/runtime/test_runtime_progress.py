"""Whom to ask for progress, what to believe, and when training last made a step."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pretrain_api.reports import StageName, StageProgress, TrainingStatus
from pretrain_operator.observe import PodFacts
from pretrain_operator.progress import (
    StepClock,
    pods_to_ask,
    progress_url,
    read_answer,
    step_of,
)
from pretrain_testing.raw_children import raw_pod

START = datetime(2026, 1, 1, tzinfo=UTC)


def pod(index: int = 0, stage: StageName = "train", **changes: Any) -> PodFacts:
    facts = PodFacts.of(raw_pod(index, stage, **changes))
    assert facts is not None
    return facts


def at(minutes: float) -> datetime:
    return START + timedelta(minutes=minutes)


def test_of_a_gang_only_the_first_pod_is_asked():
    assert [f.pod.index for f in pods_to_ask([pod(2), pod(0), pod(1)])] == [0]


def test_of_many_slices_32_are_asked():
    slices = [pod(index, "preprocess") for index in range(100)]
    assert [f.pod.index for f in pods_to_ask(slices)] == list(range(32))


def test_pods_that_do_not_run_or_have_no_address_are_not_asked():
    silent = [pod(phase="Pending"), pod(podIP=""), pod(phase="Succeeded")]
    assert list(pods_to_ask(silent)) == []


def test_an_ipv6_address_stands_in_brackets():
    assert progress_url(pod(podIP="fd00::5")) == "http://[fd00::5]:9400/progress"
    assert progress_url(pod()) == "http://10.0.0.1:9400/progress"


def test_an_answer_counts_only_for_the_pod_that_was_asked():
    answer = StageProgress(stage="train", attempt=1).model_dump_json().encode()
    assert read_answer(answer, pod(attempt=1)) is not None
    assert read_answer(answer, pod(attempt=0)) is None
    assert read_answer(b"<html>", pod(attempt=1)) is None


def test_no_stage_can_fill_the_status_with_words():
    answer = StageProgress(stage="train", message="x" * 50_000).model_dump_json().encode()
    read = read_answer(answer, pod())
    assert read is not None
    assert len(read.message) == 1024


def test_no_step_is_late_while_training_evaluates_or_writes_its_model():
    answer = StageProgress(stage="train", training=TrainingStatus(step=7, max_steps=9))
    assert step_of(answer) == 7
    assert step_of(answer.model_copy(update={"message": "evaluating"})) is None
    assert step_of(None) is None


class Steps:
    """Polls of one training job."""

    def __init__(self, began_at: int = 100) -> None:
        self.clock = StepClock()
        self.began_at = began_at

    def poll(self, step: int | None, *, minutes: float, attempt: int = 0) -> datetime | None:
        self.clock = self.clock.after(
            attempt=attempt, step=step, began_at=self.began_at, now=at(minutes)
        )
        return self.clock.stepped_at


def test_before_the_first_step_of_an_attempt_nothing_is_late():
    steps = Steps(began_at=100)
    assert steps.poll(100, minutes=0) is None
    assert steps.poll(100, minutes=50) is None


def test_each_step_sets_the_clock_anew_and_standing_still_does_not():
    steps = Steps(began_at=100)
    steps.poll(100, minutes=0)
    assert steps.poll(101, minutes=1) == at(1)
    assert steps.poll(101, minutes=9) == at(1)
    assert steps.poll(102, minutes=10) == at(10)


def test_a_new_operator_counts_from_its_own_first_poll():
    assert Steps(began_at=100).poll(450, minutes=30) == at(30)


def test_silence_is_no_hang_and_the_clock_starts_anew_after_it():
    steps = Steps(began_at=100)
    steps.poll(100, minutes=0)
    steps.poll(101, minutes=1)
    assert steps.poll(None, minutes=31) is None
    assert steps.poll(101, minutes=32) == at(32)


def test_a_new_attempt_starts_a_new_clock():
    steps = Steps(began_at=100)
    steps.poll(100, minutes=0)
    steps.poll(150, minutes=1)
    assert steps.poll(100, minutes=2, attempt=1) is None
