"""`pretrainctl` run in the test's own process: what it prints where, and its exit code."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from pretrainctl.app import main

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
"""Colours, which some CI systems make typer write without a terminal."""


@dataclass(frozen=True)
class Result:
    """A command's end."""

    code: int
    out: str
    err: str


@dataclass(frozen=True)
class Pretrainctl:
    """Runs commands, with pytest's fixtures of those names."""

    monkeypatch: pytest.MonkeyPatch
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str | Path) -> Result:
        """Run `pretrainctl` with these arguments."""
        self.monkeypatch.setenv("COLUMNS", "80")
        self.monkeypatch.setattr(sys, "argv", ["pretrainctl", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self.capsys.readouterr()
        code = int(ended.value.code or 0)
        return Result(code, ESCAPES.sub("", captured.out), ESCAPES.sub("", captured.err))
