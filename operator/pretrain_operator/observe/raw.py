"""Reading raw Kubernetes objects: moments, conditions, and parts that may be absent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

Raw = Mapping[str, Any]


def moment(text: str | None) -> datetime | None:
    """A timestamp of the API (RFC 3339, in UTC); None when there is none."""
    return datetime.fromisoformat(text) if text else None


def part(raw: Raw, *names: str) -> Raw:
    """The object at a path, empty where something on the way is absent or null."""
    for name in names:
        raw = raw.get(name) or {}
    return raw


def entries(raw: Raw, name: str) -> Sequence[Raw]:
    """A list of objects, empty where it is absent or null."""
    return raw.get(name) or ()


def find_condition(status: Raw, type_: str) -> Raw | None:
    """The condition of a type, whatever its status."""
    return next((c for c in entries(status, "conditions") if c.get("type") == type_), None)


def is_true(condition: Raw | None) -> bool:
    """Whether a condition is there and holds."""
    return condition is not None and condition.get("status") == "True"
