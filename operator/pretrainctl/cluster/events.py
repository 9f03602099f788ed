"""Events (core/v1) about a job and its children, each thing told once; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from pretrainctl.cluster.findings import SeenEvent

Raw = Mapping[str, Any]

_POD = re.compile(r'pods "[^"]*"')
"""The pod that an API server refuses."""


def told_once(items: Iterable[Raw], *, job_uid: str) -> tuple[SeenEvent, ...]:
    """Events that say the same of the same object become one; the newest comes last.

    A Job that cannot create a pod names another one each time, and says the same of each.
    """
    told: dict[tuple[str, str, str], SeenEvent] = {}
    for item in items:
        event = _read(item, job_uid)
        key = event.about, event.reason, _POD.sub("", event.message)
        told[key] = _joined(told.get(key), event)
    return tuple(sorted(told.values(), key=lambda event: _seconds(event.at)))


def _read(item: Raw, job_uid: str) -> SeenEvent:
    """Series (events.k8s.io/v1) count elsewhere than the events of old."""
    series = item.get("series") or {}
    at = (
        series.get("lastObservedTime")
        or item.get("lastTimestamp")
        or item.get("eventTime")
        or item["metadata"].get("creationTimestamp")
    )
    return SeenEvent(
        about=_subject(item.get("involvedObject") or {}, job_uid),
        type=str(item.get("type") or "Normal"),
        reason=str(item.get("reason") or ""),
        message=str(item.get("message") or "").strip(),
        count=int(series.get("count") or item.get("count") or 1),
        at=datetime.fromisoformat(at) if at else None,
    )


def _joined(before: SeenEvent | None, event: SeenEvent) -> SeenEvent:
    if before is None:
        return event
    newest = max((before, event), key=lambda seen: _seconds(seen.at))
    return replace(newest, count=before.count + event.count)


def _subject(about: Raw, job_uid: str) -> str:
    if about.get("uid") == job_uid:
        return ""
    return f"{str(about.get('kind') or '').lower()} {about.get('name') or ''}"


def _seconds(at: datetime | None) -> float:
    return at.timestamp() if at else 0.0
