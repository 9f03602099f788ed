"""The models' JSON schema as one tree: references put in place, "or null" and constants removed.

What the CRD, the reference page and the messages about wrong documents all read. It drops
nothing else; the rules of Kubernetes are `pretrain_api.schema`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import BaseModel

from pretrain_api.problems import Path

Node = dict[str, Any]
"""A JSON schema without $ref, const or members that are null."""

_REF = "#/$defs/"


def tree_of(model: type[BaseModel]) -> Node:
    """Give the tree of a model, in wire names."""
    schema = _schema_of(model)
    return _plain(schema, schema.get("$defs", {}))


@cache
def _schema_of(model: type[BaseModel]) -> Node:
    """What pydantic takes a tenth of a second for; only read here."""
    return model.model_json_schema(by_alias=True, mode="validation")


def _plain(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Node:
    """Resolve one node; what stands beside a reference wins over what it refers to."""
    beside = {key: value for key, value in node.items() if key not in {"$ref", "$defs", "title"}}
    target = node.get("$ref", "").removeprefix(_REF)
    plain = {**_plain(definitions[target], definitions), **beside} if target else dict(beside)
    if "const" in plain:
        plain["enum"] = [plain.pop("const")]
    if "properties" in beside:
        plain["properties"] = {k: _plain(v, definitions) for k, v in beside["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(beside.get(key), Mapping):
            plain[key] = _plain(beside[key], definitions)
    return _without_null(plain, definitions) if "anyOf" in beside else plain


def _without_null(node: Node, definitions: Mapping[str, Any]) -> Node:
    members = [_plain(m, definitions) for m in node.pop("anyOf") if m.get("type") != "null"]
    if len(members) == 1:
        return {**members[0], **node}
    return {**node, "anyOf": members}


def node_at(tree: Node, path: Path) -> Node | None:
    """Give the node of a place in a document; None where the models know no such place."""
    node: Node | None = tree
    for part in path:
        if node is None:
            return None
        node = _child(node, part)
    return node


def _child(node: Node, part: str | int) -> Node | None:
    if isinstance(part, int):
        return node.get("items")
    if part in node.get("properties", {}):
        child: Node = node["properties"][part]
        return child
    rest = node.get("additionalProperties")
    return rest if isinstance(rest, dict) else None
