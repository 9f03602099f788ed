"""The same file in the same directory goes on; anything else is a new job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pretrain_api.job import PretrainJob
from pretrain_api.reports import CheckpointStatus
from pretrain_api.status import (
    Condition,
    GoodputStatus,
    Phase,
    PretrainJobStatus,
    StageStatus,
)
from pretrainctl.local.continuation import continue_or_start, reopen

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
MINUTE = timedelta(seconds=60)


def wanted(name: str = "a", **spec: Any) -> PretrainJob:
    return PretrainJob.model_validate(
        {
            "apiVersion": "pretrain.dev/v1alpha1",
            "kind": "PretrainJob",
            "metadata": {"name": name},
            "spec": {
                "corpus": {"sources": [{"uri": "corpus/a.txt"}]},
                "model": {"architecture": "bert"},
                **spec,
            },
        }
    )


def saved(phase: Phase = Phase.TRAINING) -> PretrainJob:
    job = continue_or_start(wanted(), None, now=NOW, new_uid="first").job
    return job.model_copy(update={"status": PretrainJobStatus(phase=phase)})


def test_the_first_run_is_a_new_job() -> None:
    begun = continue_or_start(wanted(), None, now=NOW, new_uid="u")
    assert begun.start == "new"
    metadata = begun.job.metadata
    assert (metadata.uid, metadata.generation, metadata.creation_timestamp) == ("u", 1, NOW)


def test_the_same_file_keeps_uid_age_and_status() -> None:
    begun = continue_or_start(wanted(), saved(), now=LATER, new_uid="second")
    assert begun.start == "continued"
    assert begun.job.metadata.uid == "first"
    assert begun.job.metadata.creation_timestamp == NOW
    assert begun.job.status.phase == Phase.TRAINING


def test_a_default_that_is_written_out_changes_nothing() -> None:
    begun = continue_or_start(wanted(workers={"replicas": 1}), saved(), now=LATER, new_uid="second")
    assert begun.start == "continued"


@pytest.mark.parametrize(
    "other", [wanted("b"), wanted(training={"maxSteps": 7}), wanted(storage={"uri": "s3://b"})]
)
def test_another_name_or_spec_is_a_new_job(other: PretrainJob) -> None:
    begun = continue_or_start(other, saved(), now=LATER, new_uid="second")
    assert begun.start == "changed"
    assert begun.job.metadata.uid == "second"
    assert begun.job.status == PretrainJobStatus()


def test_a_complete_job_is_left_alone() -> None:
    before = saved(Phase.COMPLETE)
    begun = continue_or_start(wanted(), before, now=LATER, new_uid="second")
    assert begun.start == "complete"
    assert begun.job.status == before.status


def test_a_failed_job_is_opened_again_under_its_uid() -> None:
    begun = continue_or_start(wanted(), saved(Phase.FAILED), now=LATER, new_uid="second")
    assert begun.start == "reopened"
    assert begun.job.metadata.uid == "first"
    assert begun.job.status.phase == Phase.PENDING


def test_an_opened_job_has_full_budgets_fresh_stages_and_its_checkpoint() -> None:
    checkpoint = CheckpointStatus(step=500, uri="file:///c", sha256="0", time=NOW)
    conditions = [
        Condition(type=name, status="True", reason="R", last_transition_time=NOW)
        for name in ("Accepted", "Running", "Failed")
    ]
    failed = PretrainJobStatus(
        phase=Phase.FAILED,
        conditions=conditions,
        stages=[
            StageStatus(name="tokenizer", state="Complete", start_time=NOW, fingerprint="f"),
            StageStatus(name="train", state="Failed", attempt=3, start_time=NOW, total=2),
            StageStatus(name="evaluate", state="Skipped"),
            StageStatus(name="export"),
        ],
        checkpoint=checkpoint,
        no_progress_attempts=3,
        restarts={"Infrastructure": 9},
        completion_time=NOW,
        blocked_by="the disk is full",
    )

    opened = reopen(failed, now=LATER)

    assert opened == PretrainJobStatus(
        conditions=conditions[:1],
        stages=[
            StageStatus(name="tokenizer", attempt=1),
            StageStatus(name="train", attempt=4, total=2),
            StageStatus(name="evaluate", state="Skipped"),
            StageStatus(name="export"),
        ],
        checkpoint=checkpoint,
    )


def test_the_time_for_which_a_job_lay_failed_is_nobodys() -> None:
    goodput = GoodputStatus(seconds={"step": 60}, ratio=1.0, start_time=NOW - MINUTE, time=NOW)
    stages = [StageStatus(name="train", state="Failed", start_time=NOW)]
    failed = PretrainJobStatus(phase=Phase.FAILED, stages=stages, goodput=goodput)

    opened = reopen(failed, now=LATER).goodput

    assert opened is not None
    assert opened.seconds == {"step": 60, "suspended": (LATER - NOW).total_seconds()}
    assert (opened.ratio, opened.start_time) == (1.0, NOW - MINUTE)


def test_a_training_that_was_complete_takes_no_more_time() -> None:
    goodput = GoodputStatus(seconds={"step": 60}, ratio=1.0, start_time=NOW - MINUTE, time=NOW)
    stages = [
        StageStatus(name="train", state="Complete"),
        StageStatus(name="export", state="Failed"),
    ]
    failed = PretrainJobStatus(phase=Phase.FAILED, stages=stages, goodput=goodput)

    assert reopen(failed, now=LATER).goodput == goodput
