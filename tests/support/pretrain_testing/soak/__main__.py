"""`python -m pretrain_testing.soak`: brings the bed up if it is not, soaks, tells, judges."""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
from pathlib import Path

from bed.fixtures import bed_for_session
from rich.console import Console

from pretrain_testing.soak.plan import planned
from pretrain_testing.soak.report import document, tables
from pretrain_testing.soak.run import Soak

REPORT = Path("build/soak.json")
LEDGERS = Path("build/soak/ledgers")
WIDTH = 120
"""Columns that the tables take at least, where they go into a file too."""

MINUTES, EVERY_SECONDS = 30.0, 120.0


def main() -> int:
    """Carry out a plan; 1 if anything was wrong."""
    options = _parse()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    again = f"make soak MINUTES={options.minutes:g} EVERY={options.every:g} SEED={seed}"
    console = Console(width=max(WIDTH, Console().width))
    seconds = 60 * options.minutes
    plan = planned(seed=seed, seconds=seconds, every=options.every)
    console.print(f"{len(plan)} kills in {options.minutes:g} minutes; again: {again}")
    shutil.rmtree(LEDGERS, ignore_errors=True)
    load = os.getloadavg()[0]
    with bed_for_session("full") as bed:
        findings = Soak(bed, plan, seconds, LEDGERS).carry_out()
    console.print(*tables(findings), sep="\n")
    report = {"again": again, "loadAverage": load, **document(findings)}
    REPORT.write_text(json.dumps(report, indent=1, default=str) + "\n")
    console.print(f"written to {REPORT}")
    wrong = [sentence for some in findings.judged().values() for sentence in some]
    console.print(f"{len(wrong)} things are wrong" if wrong else "nothing is wrong")
    return int(bool(wrong))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--every", type=float, default=EVERY_SECONDS, help="seconds between kills")
    parser.add_argument("--seed", type=int, help="of the plan; another one each time by default")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
