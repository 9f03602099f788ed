"""Which plain YAML scalars are numbers, truth values or null: as kubectl reads and writes them.

PyYAML follows YAML 1.1, where `1e-3` is text, `1:30` a number in base 60 and a date no text. The
loader and the dumper here agree with each other and with kubectl instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

TAG_PREFIX = "tag:yaml.org,2002:"

_SCALARS = (
    ("merge", "<", r"<<"),
    ("null", "~nN", r"~|null|Null|NULL"),
    (
        "bool",
        "yYnNtTfFoO",
        r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF",
    ),
    ("int", "-+0123456789", r"[-+]?(0|[1-9][0-9_]*|0[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+)"),
    (
        "float",
        "-+.0123456789",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
    ),
)
"""Type, first characters and pattern of a plain scalar."""


class Loader(yaml.SafeLoader):
    """SafeLoader with these scalars."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}


class Dumper(yaml.SafeDumper):
    """SafeDumper that quotes what would be read as another type, and writes no aliases."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - the signature is PyYAML's
        """No reader of manifests expects aliases."""
        return True


def _represent_text(dumper: Dumper, text: str) -> yaml.ScalarNode:
    """Text of several lines as it stands, so that a config file in a manifest can be read."""
    style = "|" if "\n" in text else None
    return dumper.represent_scalar(f"{TAG_PREFIX}str", text, style=style)


Dumper.add_representer(str, _represent_text)

for _name, _first, _pattern in _SCALARS:
    for _kind in (Loader, Dumper):
        _kind.add_implicit_resolver(
            f"{TAG_PREFIX}{_name}", re.compile(f"^(?:{_pattern})$"), list(_first)
        )
for _kind in (Loader, Dumper):
    _kind.add_implicit_resolver(f"{TAG_PREFIX}null", re.compile("^$"), [""])


def dump_yaml(documents: Sequence[Any]) -> str:
    """YAML documents of JSON values, keys in their own order."""
    return yaml.dump_all(documents, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=100)
