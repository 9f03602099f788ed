"""Reading stored objects: those of other versions, and those that are wrong."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pretrain_api.documents import validate_object
from pretrain_api.errors import InvalidObjectError
from pretrain_api.status import Condition, Phase, PretrainJobStatus
from pretrain_operator.known_job import KnownJob, read_job
from pretrain_operator.unreadable import status_of_unreadable
from pretrain_testing.plan_simulator import SPEC

NOW = datetime(2026, 1, 2, tzinfo=UTC)
EARLIER = datetime(2026, 1, 1, tzinfo=UTC)
SINCE = {"lastTransitionTime": "2026-01-01T00:00:00Z"}


def stored(**parts: Any) -> dict[str, Any]:
    return {
        "apiVersion": "pretrain.dev/v1alpha1",
        "kind": "PretrainJob",
        "metadata": {
            "name": "x",
            "namespace": "team",
            "uid": "u",
            "resourceVersion": "5",
            "managedFields": [{"manager": "kubectl"}],
        },
        "spec": SPEC,
        **parts,
    }


def test_a_stored_object_is_read_and_its_bookkeeping_is_dropped():
    known = KnownJob.of(stored())
    assert known.job.metadata.name == "x"
    assert "managedFields" not in known.raw["metadata"]


def test_a_status_that_a_newer_version_wrote_is_read_as_far_as_it_is_known():
    status = {
        "phase": "Training",
        "forecast": {"steps": 3},
        "stages": [{"name": "train", "state": "Running", "attempt": 2, "rack": "r7"}],
    }
    job = read_job(stored(status=status))
    assert job.status.phase is Phase.TRAINING
    assert job.status.stages[0].attempt == 2


def test_an_entry_of_a_status_that_only_a_newer_version_knows_is_left_out_alone():
    known = {"type": "Running", "status": "True", "reason": "x"} | SINCE
    newer = {"type": "Forecast", "status": "True", "reason": "y"} | SINCE
    job = read_job(stored(status={"conditions": [newer, known, newer]}))
    assert [condition.type for condition in job.status.conditions] == ["Running"]


def test_fields_that_a_newer_crd_fills_in_are_left_out_and_told():
    corpus = {"sources": [{"uri": "corpora/wiki/", "shuffle": False}]}
    known = KnownJob.of(stored(spec={**SPEC, "corpus": corpus, "reservation": {"hours": 0}}))
    assert known.job.spec == read_job(stored()).spec
    assert known.unknown_fields == ("spec.corpus.sources.0.shuffle", "spec.reservation")


def test_a_spec_with_nothing_unknown_tells_of_nothing():
    known = KnownJob.of(stored(status={"forecast": 3}))
    assert known.job.metadata.name == "x"
    assert known.unknown_fields == ()


def test_what_people_write_is_still_held_against_every_field():
    with pytest.raises(InvalidObjectError, match=r"spec\.trainning"):
        validate_object({**stored(), "spec": {**SPEC, "trainning": {}}})


def test_a_status_field_that_somebody_spoilt_counts_as_unset():
    job = read_job(stored(status={"phase": "Dancing", "restarts": {"Hang": 1}}))
    assert job.status.phase is Phase.PENDING
    assert job.status.restarts == {"Hang": 1}


def test_a_status_that_is_no_status_counts_as_none():
    assert read_job(stored(status={"stages": 7, "restarts": []})).status == PretrainJobStatus()


def test_a_spec_that_cannot_be_read_says_where():
    with pytest.raises(InvalidObjectError, match=r"spec\.model"):
        read_job(stored(spec={**SPEC, "model": {"architecture": 5}}))


def test_a_job_for_another_controller_is_foreign_and_one_for_us_is_not():
    ours = {**SPEC, "managedBy": "pretrain.dev/operator"}
    theirs = {**SPEC, "managedBy": "kueue.x-k8s.io/multikueue"}
    assert not KnownJob.of(stored()).is_foreign
    assert not KnownJob.of(stored(spec=ours)).is_foreign
    assert KnownJob.of(stored(spec=theirs)).is_foreign


def unreadable(before: PretrainJobStatus) -> PretrainJobStatus:
    with pytest.raises(InvalidObjectError) as error:
        read_job(stored(spec={}))
    return status_of_unreadable(before, error.value, generation=4, now=NOW)


def test_a_new_job_with_an_unreadable_spec_has_failed():
    status = unreadable(PretrainJobStatus())
    assert status.phase is Phase.FAILED
    assert status.completion_time == NOW
    assert [(c.type, c.status) for c in status.conditions] == [
        ("Accepted", "False"),
        ("Failed", "True"),
    ]


def test_a_job_that_runs_goes_on_when_its_edited_spec_is_unreadable():
    accepted = Condition(
        type="Accepted", status="True", reason="Valid", last_transition_time=EARLIER
    )
    running = PretrainJobStatus(phase=Phase.TRAINING, conditions=[accepted])
    status = unreadable(running)
    assert status.phase is Phase.TRAINING
    assert status.conditions[0].status == "False"
    assert status.conditions[0].last_transition_time == NOW
    assert status.observed_generation == 4
    assert unreadable(status) == status


def test_a_job_that_has_ended_stays_as_it_ended():
    ended = PretrainJobStatus(phase=Phase.COMPLETE)
    assert unreadable(ended) is ended
