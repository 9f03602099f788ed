"""The operator takes no arguments, and starts nothing when it is given some."""

from __future__ import annotations

import sys

import pytest
from pretrain_operator.__main__ import main


@pytest.mark.parametrize("argument", ["-h", "--help"])
def test_help_says_how_the_operator_is_configured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], argument: str
) -> None:
    monkeypatch.setattr(sys, "argv", ["pretrain_operator", argument])
    assert main() == 0
    assert "environment variables" in capsys.readouterr().out


def test_any_other_argument_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["pretrain_operator", "run"])
    assert main() == 2
    assert capsys.readouterr().err.startswith("usage: python -m pretrain_operator")
