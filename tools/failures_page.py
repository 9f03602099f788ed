"""Renews docs/failures.md from what the tests of faults saw on a cluster.

`make generate-failures` runs it after them; they leave their results in build/failures.json.
`--check` writes nothing and fails when the page says anything else but for its times.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "build" / "failures.json"
PAGE = ROOT / "docs" / "failures.md"

_HEAD = """\
<!-- Made by `make generate-failures` from what tests/cluster/faults saw; change those. -->
# Failures

What can go wrong with a job on a cluster, what is said of it, and what happens next. Each row was
seen on a real cluster (tests/cluster/faults). The sentence is `status.blockedBy`, which
`kubectl describe ptj` and `pretrainctl describe` show; a job that has failed has it as the message
of its condition `Failed` too, and a restart is an event `AttemptFailed`. The time is what passed
between the first sign in the cluster (a pod, an event) and the sentence. NAMESPACE, NODE, UID and
the like stand for what differs.

Causes, their exit codes and how often each is tried again: [How a job runs](how-a-job-runs.md).

"""
_TITLES = ("Fault", "Cause", "Sentence", "Time", "What happens next")

_TAIL = """
## What is never done

- A job that has failed, or is complete, never changes again, whatever is edited or deleted.
- Nothing that the spec or the data are the reason of is tried again.
- What waits for somebody else (a quota, a place, a Secret, a queue) uses no restart and has no end
  of its own; `spec.pendingDeadlineSeconds` gives it one.
- An attempt that cannot start is begun anew when the spec is edited, without using a restart.

## Refused credentials

They expire, and others renew them in the Secret while the job stays as it is. So an attempt that
the storage refuses is followed by another, which reads the Secret anew: ten times in growing gaps,
half an hour in all. A higher limit for `StorageUnavailable` in `spec.failurePolicy.restarts` makes
that longer, and `spec.suspend` stops it. No worker runs in the gaps.
"""


def main() -> int:
    """Write the page, or with --check compare it."""
    parser = argparse.ArgumentParser(prog="python -m tools.failures_page", description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    if not RESULTS.exists():
        sys.stderr.write(f"{RESULTS} is not there: run `pytest tests/cluster/faults` first\n")
        return 1
    made = page(json.loads(RESULTS.read_text(encoding="utf-8")))
    if not check:
        PAGE.write_text(made, encoding="utf-8")
        return 0
    stale = _without_times(made) != _without_times(PAGE.read_text(encoding="utf-8"))
    if stale:
        sys.stderr.write(f"{PAGE.relative_to(ROOT)} is stale: run `make generate-failures`\n")
    return int(stale)


def page(rows: Iterable[Mapping[str, Any]]) -> str:
    """Give the whole page, a line of its table for each row of the results."""
    lines = [_line(_TITLES), _line(["---"] * len(_TITLES)), *map(_row, rows)]
    return _HEAD + "\n".join(lines) + "\n" + _TAIL


def _row(row: Mapping[str, Any]) -> str:
    cause = f"`{row['cause']}`" if row["cause"] else "none"
    sentence = f"`{row['sentence']}`" if row["sentence"] else ""
    return _line([row["fault"], cause, sentence, duration(row["seconds"]), row["follows"]])


def duration(seconds: float) -> str:
    """A time as it stands in the table."""
    return "under 1 s" if seconds < 1 else f"{seconds:.0f} s"


def _without_times(text: str) -> str:
    return re.sub(r"\| (?:under )?\d+ s \|", "| TIME |", text)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


if __name__ == "__main__":
    sys.exit(main())
