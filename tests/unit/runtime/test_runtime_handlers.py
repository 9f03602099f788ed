"""What kopf is told: to watch, to wait for nobody, and to write nothing."""

from __future__ import annotations

import kopf
from pretrain_operator.handlers import build_settings


def test_no_other_operator_of_kopf_s_is_waited_for() -> None:
    assert build_settings().peering.standalone


def test_nothing_is_kept_in_an_object_and_no_event_is_posted() -> None:
    settings = build_settings()
    body = kopf.Body({"metadata": {"name": "a"}, "spec": {"suspend": True}})

    assert not settings.posting.enabled
    assert settings.persistence.diffbase_storage.build(body=body) == {}
    assert settings.persistence.diffbase_storage.fetch(body=body) is None
