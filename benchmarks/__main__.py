"""Run every benchmark, print one table and write build/bench.json.

Figures are CPU-seconds and ratios within one run where possible, as machines differ and are
shared; the table says the target beside each figure that has one.
"""

from __future__ import annotations

import argparse
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.masking import measure_masking
from benchmarks.preprocess import measure_preprocess
from benchmarks.training import measure_training

REPORT = Path("build/bench.json")
Measure = Callable[[], dict[str, Any]]


@dataclass(frozen=True)
class Target:
    """A bound that a figure is held against."""

    text: str
    met: Callable[[float], bool]


TARGETS = {
    ("preprocess", "cpu_seconds"): Target("at most 30", lambda value: value <= 30),
    ("preprocess", "peak_rss_mb"): Target("under 500", lambda value: value < 500),
    ("masking", "million_tokens_per_second"): Target("at least 20", lambda value: value >= 20),
    ("training", "throughput_ratio"): Target("at least 0.95", lambda value: value >= 0.95),
}


def main() -> None:
    """Measure what was asked for; all by default."""
    options = _parse()
    measures: dict[str, Measure] = {
        "preprocess": lambda: measure_preprocess(options.corpus, vocab_size=21_128),
        "masking": measure_masking,
        "training": measure_training,
    }
    console = Console()
    results = {}
    for name in options.only or measures:
        console.print(f"measuring {name} ...")
        results[name] = measures[name]()
    console.print(_table(results))
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    machine = {"platform": platform.platform(), "processor": platform.processor()}
    REPORT.write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")
    console.print(f"written to {REPORT}")


def _table(results: dict[str, dict[str, Any]]) -> Table:
    table = Table("benchmark", "figure", "value", "target")
    for benchmark, figures in results.items():
        for name, value in figures.items():
            target = TARGETS.get((benchmark, name))
            shown = f"{value:,.3f}" if isinstance(value, float) else str(value)
            table.add_row(benchmark, name, shown, _judgement(target, value))
    return table


def _judgement(target: Target | None, value: Any) -> str:
    if target is None:
        return ""
    return f"{target.text}: {'met' if target.met(value) else 'MISSED'}"


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("only", nargs="*", help="benchmarks to run: preprocess, masking, training")
    parser.add_argument(
        "--corpus",
        type=Path,
        default=None,
        help="JSON lines (.zst too) for preprocess; the quickstart's reviews by default",
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
