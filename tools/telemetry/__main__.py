"""Renews the dashboards in the chart and docs/reference/metrics.md.

`make generate` runs it; `--check` writes nothing and fails when a file is not what it would write.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.telemetry.fleet_dashboard import FLEET
from tools.telemetry.grafana import dashboard_json
from tools.telemetry.job_dashboard import JOB
from tools.telemetry.metrics_page import metrics_page
from tools.telemetry.operator_dashboard import OPERATOR

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "charts/pretrain-operator/dashboards"
PAGE = ROOT / "docs/reference/metrics.md"


def main() -> int:
    """Write the files, or with --check compare them."""
    parser = argparse.ArgumentParser(prog="python -m tools.telemetry", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    stale = [(path, text) for path, text in contents().items() if not holds(path, text)]
    for path, text in stale:
        if check:
            sys.stderr.write(f"{path.relative_to(ROOT)} is stale: run `make generate`\n")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    return int(check and bool(stale))


def contents() -> dict[Path, str]:
    """Give each file's text."""
    files = {DASHBOARDS / f"{board.name}.json": dashboard_json(board) for board in BOARDS}
    return {**files, PAGE: metrics_page()}


def holds(path: Path, text: str) -> bool:
    """Tell whether a file is there with this text."""
    return path.exists() and path.read_text(encoding="utf-8") == text


BOARDS = (FLEET, JOB, OPERATOR)


if __name__ == "__main__":
    sys.exit(main())
