"""CEL rules of open bounds (more than 0, less than 1): a structural schema has closed ones only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pretrain_api.presets import ARCHITECTURES
from pretrain_api.rules import CelRule, Example
from pretrain_api.tree import Node

_TASK = {"name": "sentiment", "data": {"uri": "sentiment.jsonl"}}
_SOURCE = {"uri": "corpus/text.jsonl"}
_SIBLINGS: dict[str, Any] = {
    "evaluation": {"tasks": [_TASK]},
    "corpus": {"sources": [_SOURCE], "validation": {"sources": [_SOURCE]}},
}
"""What a value inside a list's item needs beside it, by section."""

_LOWER = ("exclusiveMinimum", "minimum")
_UPPER = ("exclusiveMaximum", "maximum")
_OPEN_BOUNDS = (("exclusiveMinimum", ">", "more than"), ("exclusiveMaximum", "<", "less than"))


def bound_rules(node: Node, path: str = "spec") -> Iterator[CelRule]:
    """Give the rules of all open bounds at and below a node of a tree, with examples."""
    for key, sign, words in _OPEN_BOUNDS:
        if key in node:
            yield _bound_rule(node, path, float(node[key]), (sign, words))
    for name, child in node.get("properties", {}).items():
        yield from bound_rules(child, f"{path}.{name}")
    if "items" in node:
        yield from bound_rules(node["items"], f"{path}[]")


def _bound_rule(node: Node, path: str, bound: float, sign_and_words: tuple[str, str]) -> CelRule:
    sign, words = sign_and_words
    inside = _inside(node)
    return CelRule(
        path=path,
        rule=f"self {sign} {bound}",
        message=f"must be {words} {bound:g}",
        accepted=Example(_example(path, inside)),
        refused=Example(_example(path, bound)),
    )


def _inside(node: Node) -> float:
    """Give a value within both bounds of a node."""
    bounds = [node[key] for key in _LOWER + _UPPER if key in node]
    return float(sum(bounds)) / 2


def _example(path: str, value: float) -> dict[str, Any]:
    """Write a value at a path below spec, into the first item of each list on the way."""
    section, *rest = path.split(".")[1:]
    spec: dict[str, Any] = {section: _SIBLINGS.get(section, {})}
    if section == "objective":
        spec["model"] = {"architecture": _architecture_with(rest[0])}
    return _written(spec, [section, *rest], value)


def _architecture_with(objective: str) -> str:
    return next(name for name, each in ARCHITECTURES.items() if each.objective == objective)


def _written(data: dict[str, Any], keys: list[str], value: float) -> dict[str, Any]:
    name, is_list = keys[0].removesuffix("[]"), keys[0].endswith("[]")
    if is_list and len(keys) == 1:
        return {**data, name: [value, 0.5]}
    if is_list:
        return {**data, name: [_written(data[name][0], keys[1:], value)]}
    if len(keys) == 1:
        return {**data, name: value}
    return {**data, name: _written(data.get(name, {}), keys[1:], value)}
