"""Block YAML of plain values, always the same text for the same values.

Only what manifests need (objects, lists, text, numbers, truth values): the API depends on nothing
but pydantic. Read back by YAML 1.1 and 1.2 alike, keys up to their 1,024 characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_./()-]*( [A-Za-z0-9_./(),;'+*%=<>-]+)*")
_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def block_yaml(value: Any) -> str:
    """Write a value as a YAML document; raises TypeError for what JSON does not know."""
    return "".join(f"{line}\n" for line in _lines(value))


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _entry(f"{_scalar(key)}:", item, indent="  ")
    elif isinstance(value, list | tuple) and value:
        for item in value:
            yield from _item(item)
    else:
        yield _scalar(value)


def _entry(head: str, value: Any, indent: str) -> Iterator[str]:
    if not _is_nested(value):
        yield f"{head} {_scalar(value)}"
        return
    yield head
    yield from (f"{indent}{line}" for line in _lines(value))


def _item(value: Any) -> Iterator[str]:
    """Write a list's entry; its first line stands beside the dash."""
    for number, line in enumerate(_lines(value)):
        yield f"- {line}" if number == 0 else f"  {line}"


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple) and bool(value)


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value)
    if isinstance(value, float):
        return _number(value)
    return json.dumps(value)


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _RESERVED


def _quoted(text: str) -> str:
    """Quote as JSON does, but for characters that JSON writes as two surrogates."""
    wide = 0x10000
    parts = (json.dumps(c)[1:-1] if ord(c) < wide else f"\\U{ord(c):08x}" for c in text)
    return f'"{"".join(parts)}"'


def _number(value: float) -> str:
    """Write a float with a point even beside an exponent, which YAML 1.1 asks for."""
    mantissa, exponent, power = repr(value).partition("e")
    if exponent and "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}{exponent}{power}"
