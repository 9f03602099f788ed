"""Documents as a newer version may write them: with fields that nobody here knows."""

from __future__ import annotations

import json
from typing import Any

from pretrain_api.base import ApiModel, Message
from pydantic import BaseModel

FUTURE = {"aFieldOfTheFuture": {"with": ["a", 1, None]}}


def of_the_future(model: BaseModel, *, kind: type[ApiModel] = Message) -> bytes:
    """A model's JSON with another field in each object that is of a kind."""
    return json.dumps(_extended(model, kind)).encode()


def _extended(value: Any, kind: type[ApiModel]) -> Any:
    if isinstance(value, BaseModel):
        plain = value.model_dump(mode="json", by_alias=True)
        inside = {
            field.alias or name: _extended(getattr(value, name), kind)
            for name, field in type(value).model_fields.items()
        }
        changed = {key: item for key, item in inside.items() if item is not _SAME}
        return {**plain, **changed, **(FUTURE if isinstance(value, kind) else {})}
    if isinstance(value, list | tuple):
        items = [_extended(item, kind) for item in value]
        return items if items and _SAME not in items else _SAME
    if isinstance(value, dict):
        found = {key: _extended(item, kind) for key, item in value.items()}
        return found if found and _SAME not in found.values() else _SAME
    return _SAME


_SAME: Any = object()
