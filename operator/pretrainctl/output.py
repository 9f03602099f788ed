"""What commands print: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


class DataFormat(StrEnum):
    """Machine-readable formats."""

    JSON = "json"
    YAML = "yaml"


def print_data(data: Any, output: DataFormat) -> None:
    """Print JSON values; a list becomes a JSON array or YAML documents."""
    if output is DataFormat.JSON:
        print_text(json.dumps(data, indent=2, ensure_ascii=False))
    else:
        from pretrainctl.yaml_scalars import dump_yaml

        print_text(dump_yaml(data if isinstance(data, list) else [data]).rstrip("\n"))


def print_text(text: str) -> None:
    """Print a result."""
    sys.stdout.write(f"{text}\n")


def print_note(text: str) -> None:
    """Print what is no result."""
    sys.stderr.write(f"{text}\n")


def error_console() -> Console:
    """Standard error as rich sees it; colours follow NO_COLOR and whether it is a terminal."""
    from rich.console import Console

    return Console(stderr=True, highlight=False)
