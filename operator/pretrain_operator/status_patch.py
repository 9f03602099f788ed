"""What has to be sent so that a stored status becomes the planned one; pure.

A JSON merge patch (RFC 7396) of the fields that differ as they are serialised. Fields that this
version does not know are left alone, for a newer one may have written them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pretrain_api.status import PretrainJobStatus

Json = Any
"""A value as it is in JSON."""

_KNOWN = frozenset(field.alias or name for name, field in PretrainJobStatus.model_fields.items())


def wire_status(status: PretrainJobStatus) -> dict[str, Json]:
    """A status as it is stored; what is None is left out."""
    return status.model_dump(mode="json", by_alias=True, exclude_none=True)


def merge_patch(stored: Mapping[str, Json], wanted: Mapping[str, Json]) -> dict[str, Json]:
    """The patch from one status to another; empty when they are equal."""
    known = {name: value for name, value in stored.items() if name in _KNOWN}
    return _difference(known, wanted)


def unstored_fields(sent: Mapping[str, Json], stored: Mapping[str, Json]) -> list[str]:
    """Fields of a patch that an older CRD has dropped."""
    return sorted(
        name for name, value in sent.items() if value not in (None, {}) and stored.get(name) is None
    )


def tells_news(stored: PretrainJobStatus, wanted: PretrainJobStatus) -> bool:
    """Whether a change must be told at once; figures and sentences may wait to be told together."""
    return bool(_headlines(stored) != _headlines(wanted))


def _difference(old: Mapping[str, Json], new: Mapping[str, Json]) -> dict[str, Json]:
    patch: dict[str, Json] = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = _difference(before, value)
            if inner:
                patch[name] = inner
        elif name not in old or before != value:
            patch[name] = value
    return patch


def _headlines(status: PretrainJobStatus) -> Json:
    return (
        status.phase,
        status.observed_generation,
        status.restarts,
        status.export_uri,
        [(c.type, c.status, c.reason) for c in status.conditions],
        [(s.name, s.state, s.attempt, s.retry_time, s.uri, s.total) for s in status.stages],
    )
