"""Reading what another version wrote: unknown fields are left out, and told.

`Message` models leave them out by themselves. Here are the sections of a spec, which are strict
towards people and also reach processes of other versions: the operator through an API server with
a newer CustomResourceDefinition, a stage's process through its config.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from pretrain_api.base import Message

ModelT = TypeVar("ModelT", bound=BaseModel)
Place = tuple[int | str, ...]


def read_json(model: type[ModelT], text: bytes) -> tuple[ModelT, tuple[str, ...]]:
    """The model, and the dotted paths of the fields that it does not know.

    Raises pydantic's ValidationError for anything else that does not fit.
    """
    try:
        return model.model_validate_json(text), ()
    except ValidationError as error:
        unknown = unknown_fields(error)
        if not unknown:
            raise
    data = without(json.loads(text), unknown)
    return model.model_validate_json(json.dumps(data)), tuple(map(dotted, unknown))


def unknown_fields(error: ValidationError) -> list[Place]:
    """Where a document has fields that its model does not know."""
    found = error.errors(include_url=False)
    return [each["loc"] for each in found if each["type"] == "extra_forbidden"]


def without(value: Any, places: list[Place]) -> Any:
    """A copy of a document without the values at some places."""
    for place in sorted(places, key=_order, reverse=True):
        value = _cut(value, place)
    return value


def dotted(place: Place) -> str:
    """A place as one word, such as corpus.sources.0.uri."""
    return ".".join(map(str, place))


def asked_fields(config: BaseModel) -> tuple[str, ...]:
    """Dotted paths of all fields in the strict sections of a config that are not at their default.

    An older version can run without the others, as their defaults do what it does.
    """
    sections = ((name, getattr(config, name)) for name in type(config).model_fields)
    return tuple(
        path
        for name, section in sections
        if isinstance(section, BaseModel) and not isinstance(section, Message)
        for path in _changed(section, _wire_name(config, name))
    )


def _changed(model: BaseModel, path: str) -> Iterator[str]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if value != field.get_default(call_default_factory=True, validated_data={}):
            here = f"{path}.{_wire_name(model, name)}"
            yield here
            yield from _changed_inside(value, here)


def _changed_inside(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, BaseModel):
        yield from _changed(value, path)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _changed_inside(item, f"{path}.{index}")


def _wire_name(model: BaseModel, name: str) -> str:
    return type(model).model_fields[name].alias or name


def _order(place: Place) -> list[tuple[int, str]]:
    """Of a list's items the last first, so that none moves before its turn."""
    return [(part, "") if isinstance(part, int) else (-1, part) for part in place]


def _cut(value: Any, place: Place) -> Any:
    head, *rest = place
    if isinstance(value, list):
        kept = [(i, item) for i, item in enumerate(value) if rest or i != head]
        return [_cut(item, tuple(rest)) if i == head else item for i, item in kept]
    if not isinstance(value, dict):
        return value
    if not rest:
        return {name: item for name, item in value.items() if name != head}
    return {k: _cut(item, tuple(rest)) if k == head else item for k, item in value.items()}
