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

REPORT = Path("build/bench.json")
BENCHMARKS = ("preprocess", "masking", "training", "checkpoint", "operator", "recovery")


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
    ("checkpoint", "stall_cold_ratio"): Target("at most 0.05", lambda value: value <= 0.05),
    ("checkpoint", "stall_warm_ratio"): Target("at most 0.01", lambda value: value <= 0.01),
    ("checkpoint", "throughput_ratio_while_writing"): Target(
        "at least 0.9", lambda value: value >= 0.9
    ),
    ("checkpoint", "snapshot_memory_ratio"): Target(
        "at most one copy", lambda value: value <= 1.01
    ),
    ("operator", "cpu_ms_per_job_and_stage"): Target("at most 20", lambda value: value <= 20),
    ("operator", "peak_rss_mb"): Target("under 200", lambda value: value < 200),
    ("operator", "requests_per_job_and_stage"): Target("at most 8", lambda value: value <= 8),
    ("recovery", "seconds_beyond_start_and_load"): Target("at most 60", lambda value: value <= 60),
}


def main() -> None:
    """Measure what was asked for; all by default."""
    options = _parse()
    console = Console()
    results = {}
    for name in options.only or BENCHMARKS:
        console.print(f"measuring {name} ...")
        results[name] = _measure(name, options)
    console.print(_table(results))
    if "operator" in results:
        console.print(_beside_others(results["operator"]))
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    machine = {"platform": platform.platform(), "processor": platform.processor()}
    REPORT.write_text(json.dumps({"machine": machine, "results": results}, indent=2) + "\n")
    console.print(f"written to {REPORT}")


def _measure(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Figures of one benchmark; each needs other things, and torch is loaded only where it is."""
    match name:
        case "preprocess":
            from benchmarks.preprocess import measure_preprocess

            return measure_preprocess(options.corpus, vocab_size=21_128)
        case "masking":
            from benchmarks.masking import measure_masking

            return measure_masking()
        case "training":
            from benchmarks.training import measure_training

            return measure_training()
        case "checkpoint":
            from benchmarks.checkpoint import measure_checkpoint

            return measure_checkpoint()
        case "recovery":
            from benchmarks.recovery import measure_recovery

            return measure_recovery()
        case _:
            from benchmarks.operator_load import measure_operator

            return measure_operator(options.jobs)


def _beside_others(figures: dict[str, Any]) -> Table:
    from benchmarks.load.reference import reference_table

    return reference_table(figures)


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
    parser.add_argument(
        "only", nargs="*", metavar="BENCHMARK", help=f"to run: {', '.join(BENCHMARKS)}"
    )
    parser.add_argument(
        "--corpus",
        type=Path,
        default=None,
        help="JSON lines (.zst too) for preprocess; the quickstart's reviews by default",
    )
    parser.add_argument("--jobs", type=int, default=300, help="that the operator gets at once")
    options = parser.parse_args()
    unknown = set(options.only) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmarks: {', '.join(sorted(unknown))}")
    return options


if __name__ == "__main__":
    main()
