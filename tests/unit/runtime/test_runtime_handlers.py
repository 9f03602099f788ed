"""What kopf is told: to watch, to wait for nobody, and to write nothing."""

from __future__ import annotations

from typing import Any, cast

import kopf
from pretrain_operator.handlers import build_settings, note
from pretrain_operator.store import Store


def test_no_other_operator_of_kopf_s_is_waited_for() -> None:
    assert build_settings().peering.standalone


def test_nothing_is_kept_in_an_object_and_no_event_is_posted() -> None:
    settings = build_settings()
    body = kopf.Body({"metadata": {"name": "a"}, "spec": {"suspend": True}})

    assert not settings.posting.enabled
    assert settings.persistence.diffbase_storage.build(body=body) == {}
    assert settings.persistence.diffbase_storage.fetch(body=body) is None


def told(type_: str | None, version: int) -> kopf.RawEvent:
    metadata = {"name": "a", "namespace": "team-a", "uid": "u", "resourceVersion": str(version)}
    return cast("kopf.RawEvent", {"type": type_, "object": {"metadata": metadata, "spec": {}}})


def test_a_job_is_known_from_when_kopf_hears_of_it_until_it_is_gone() -> None:
    woken: list[Any] = []
    store = Store(job_changed=woken.append, children_changed=woken.append)

    note(told(None, 1), store)
    assert len(store.jobs) == 1
    note(told("MODIFIED", 2), store)
    note(told("DELETED", 3), store)

    assert len(store.jobs) == 0
    assert woken == [("team-a", "a")] * 2
