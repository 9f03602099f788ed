"""Changes that may gather, those that a job is planned for at once, and those that are no news."""

from __future__ import annotations

from typing import Any

import pytest
from pretrain_operator.observe import PodFacts
from pretrain_operator.store import Store
from pretrain_testing.raw_children import condition, raw_job, raw_pod, terminated

Raw = dict[str, Any]


class Told:
    """A store, and what it tells of its children."""

    def __init__(self) -> None:
        self.at_once = 0
        self.later = 0
        self.version = 0
        self.store = Store(
            job_changed=self._at_once, children_changed=self._at_once, children_moved=self._later
        )

    def pod(self, raw: Raw) -> tuple[int, int]:
        """Put a version of the pod; how often each was told since the version before."""
        return self._put(self.store.pods.put, raw)

    def job(self, raw: Raw) -> tuple[int, int]:
        """Put a version of the Job, likewise."""
        return self._put(self.store.child_jobs.put, raw)

    def own_write(self, raw: Raw) -> tuple[int, int]:
        """Put a child that we made, likewise."""
        return self._put(self.store.put_own_write, raw)

    def pretrain_job(self, **changed: Any) -> tuple[int, int]:
        """Put a version of the PretrainJob, likewise."""
        metadata = {"name": "roberta-zh", "namespace": "team-a", "generation": 1}
        raw = {"metadata": {**metadata, **changed.pop("metadata", {})}, "spec": {}, **changed}
        return self._put(self.store.jobs.put, raw)

    def _put(self, put: Any, raw: Raw) -> tuple[int, int]:
        self.at_once = self.later = 0
        self.version += 1
        named = {"uid": "uid", **raw["metadata"], "resourceVersion": str(self.version)}
        put({**raw, "metadata": named})
        return self.at_once, self.later

    def _at_once(self, _: Any) -> None:
        self.at_once += 1

    def _later(self, _: Any) -> None:
        self.later += 1


AT_ONCE, LATER, NEVER = (1, 0), (0, 1), (0, 0)


def test_a_pod_is_news_when_it_begins_to_run_not_on_its_way_there_nor_when_it_is_done():
    told = Told()
    unbound = raw_pod(phase="Pending", state={}, conditions=[])
    assert told.pod({**unbound, "spec": {}}) == NEVER
    assert told.pod(raw_pod(phase="Pending", state={})) == LATER
    assert told.pod(raw_pod()) == AT_ONCE
    assert told.pod(raw_pod(phase="Succeeded", state=terminated(0, reason="Completed"))) == LATER


@pytest.mark.parametrize(
    "pod",
    [
        raw_pod(phase="Failed", state=terminated(1)),
        raw_pod(phase="Failed", state={}, reason="Evicted"),
        raw_pod(phase="Pending", state={"waiting": {"reason": "ImagePullBackOff"}}),
        raw_pod(phase="Pending", state={}, conditions=[condition("DisruptionTarget")]),
    ],
)
def test_a_pod_that_fails_or_waits_for_something_is_news(pod: Raw):
    assert PodFacts.of(pod) is not None
    assert Told().pod(pod) == AT_ONCE


def test_a_pod_that_is_deleted_or_gone_is_news():
    told = Told()
    pending = raw_pod(phase="Pending", state={})
    told.pod(pending)
    deleted = {**pending["metadata"], "deletionTimestamp": "2026-01-01T00:01:00Z"}
    assert told.pod({**pending, "metadata": deleted}) == AT_ONCE
    told.at_once = 0
    told.store.pods.remove({"metadata": {"uid": "uid"}})
    assert told.at_once == 1


def test_of_a_job_that_succeeds_only_the_first_condition_is_news():
    told = Told()
    met, complete = condition("SuccessCriteriaMet"), condition("Complete")
    assert told.job(raw_job()) == NEVER
    assert told.job(raw_job(startTime="2026-01-01T00:00:01Z", active=2, ready=1)) == NEVER
    assert told.job(raw_job(succeeded=1)) == LATER
    assert told.job(raw_job(succeeded=2, conditions=[met])) == AT_ONCE
    assert told.job(raw_job(succeeded=2, conditions=[met, complete])) == NEVER


def test_a_job_that_has_lost_a_pod_still_tells_how_many_succeed():
    told = Told()
    told.job(raw_job(failed=1))
    assert told.job(raw_job(failed=1, succeeded=1)) == LATER


@pytest.mark.parametrize(
    "job",
    [
        raw_job(failed=1),
        raw_job(conditions=[condition("FailureTarget")]),
        raw_job(conditions=[condition("Suspended")]),
    ],
)
def test_a_job_that_fails_or_is_suspended_is_news(job: Raw):
    told = Told()
    told.job(raw_job())
    assert told.job(job) == AT_ONCE


def test_of_a_pretrain_job_another_status_alone_is_no_news():
    told = Told()
    assert told.pretrain_job() == AT_ONCE
    assert told.pretrain_job(status={"phase": "Pending"}) == NEVER
    assert told.pretrain_job(metadata={"generation": 2}) == AT_ONCE
    deleted = {"generation": 2, "deletionTimestamp": "2026-01-01T00:01:00Z"}
    assert told.pretrain_job(metadata=deleted) == AT_ONCE


@pytest.mark.parametrize(("kind", "news"), [("Job", LATER), ("Service", NEVER)])
def test_what_we_deleted_ourselves_can_wait(kind: Any, news: tuple[int, int]):
    told, raw = Told(), {**raw_job(), "kind": kind}
    told.own_write(raw)
    told.store.note_deleted(kind, raw["metadata"]["uid"])
    assert (told.at_once, told.later) == news
