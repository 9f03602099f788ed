"""Sentences about one field that is missing, unknown, or holds a value it cannot hold."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

from pretrain_api.base import OBJECT_NAME_PATTERN
from pretrain_api.problems import Path
from pretrain_api.tree import Node, node_at

LONGEST_QUOTE = 60
"""Characters of a found value that a message repeats."""

_PATTERNS = {
    OBJECT_NAME_PATTERN: "which are small letters, digits, hyphens and dots, with a letter or "
    "digit at both ends and beside each dot",
}
"""In words, where everybody knows what is meant; other patterns are told as they are."""

_SHORT_LIVED_VOLUMES = frozenset({"emptyDir", "ephemeral"})

_TYPES = {
    "integer": "an integer",
    "number": "a number",
    "string": "text",
    "boolean": "true or false",
    "array": "a list",
    "object": "keys and values",
}


def describe(tree: Node, data: Any, path: Path, kind: str) -> str:
    """Say what is wrong at a path; `kind` is pydantic's name of the error.

    Only "missing" and "extra_forbidden" are told apart: for every other kind the sentence says
    what was found and all that the field demands.
    """
    if kind == "missing":
        return _missing(node_at(tree, path))
    if kind == "extra_forbidden":
        return _unknown(node_at(tree, path[:-1]) or {}, str(path[-1]))
    node, found = node_at(tree, path) or {}, _at(data, path)
    return f"expected {_expectation(node)}, found {_quote(found)}{_text_hint(node, found)}"


def _missing(node: Node | None) -> str:
    meaning = (node or {}).get("description", "").partition("\n")[0]
    return f"is required{f': {meaning}' if meaning else ''}"


def _unknown(parent: Node, key: str) -> str:
    known = list(parent.get("properties", {}))
    if key in _SHORT_LIVED_VOLUMES and "hostPath" in known:
        return f"dies with its pod, and what lies there must not; give {' or '.join(known)}"
    plain = {name.lower(): name for name in known}
    close = get_close_matches(key.lower().replace("_", ""), list(plain), n=1)
    if close:
        return f"is no known field; did you mean {plain[close[0]]}?"
    return f"is no known field; known here are {', '.join(known)}"


def _expectation(node: Node) -> str:
    if "enum" in node:
        values = [str(value) for value in node["enum"]]
        return values[0] if len(values) == 1 else f"one of {', '.join(values)}"
    if "anyOf" in node:
        return " or ".join(dict.fromkeys(_expectation(member) for member in node["anyOf"]))
    what = _TYPES.get(node.get("type", ""), "another value")
    if node.get("format") == "date-time":
        what = "a time with its zone, such as 2030-01-01T00:00:00Z"
    bounds = _bounds(node)
    return f"{what} {bounds}" if bounds else what


def _bounds(node: Node) -> str:
    """Write a node's bounds in words: `of at least 1 and at most 10`, `that matches ...`."""
    words = [
        ("minimum", "at least {}"),
        ("exclusiveMinimum", "more than {}"),
        ("maximum", "at most {}"),
        ("exclusiveMaximum", "less than {}"),
        ("minLength", "at least {} characters"),
        ("maxLength", "at most {} characters"),
        ("minItems", "at least {} entries"),
        ("maxItems", "at most {} entries"),
        ("maxProperties", "at most {} entries"),
    ]
    bounds = " and ".join(text.format(_number(node[key])) for key, text in words if key in node)
    pattern = (
        _PATTERNS.get(node["pattern"], f"matching {node['pattern']}") if "pattern" in node else ""
    )
    return ", ".join(filter(None, (f"of {bounds}" if bounds else "", pattern)))


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data


def _quote(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return _TYPES["object" if isinstance(value, dict) else "array"]
    if isinstance(value, str):
        return f'the text "{_short(value)}"{_number_hint(value)}'
    return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}..."


def _text_hint(node: Node, found: Any) -> str:
    """Say how a name such as 2026 or on, which YAML takes for something else, becomes text."""
    plain = isinstance(found, bool | int | float)
    return " (put it in quotes to make it text)" if plain and node.get("type") == "string" else ""


def _number_hint(text: str) -> str:
    """Say why a number is read as text: quotes, or an exponent that YAML 1.1 does not know."""
    try:
        float(text)
    except ValueError:
        return ""
    return f" (write it without quotes, as {float(text):.12g})"
