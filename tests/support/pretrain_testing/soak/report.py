"""What a soak prints, and the document that it leaves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.table import Table

from pretrain_testing.soak.accounts import by_kind, wall_clock
from pretrain_testing.soak.bounds import MIB
from pretrain_testing.soak.children import FAILED
from pretrain_testing.soak.findings import Findings
from pretrain_testing.soak.growth import Growth

Row = tuple[str, str, str]


def tables(findings: Findings) -> Iterator[Table]:
    """Kills, goodput, and everything else with what was wrong with it."""
    yield _kills(findings)
    yield _goodput(findings)
    yield _figures(findings)


def document(findings: Findings) -> dict[str, Any]:
    """The same as JSON, with every reading."""
    goodput = findings.status["goodput"]
    return {
        "seconds": findings.seconds,
        "kills": [
            {
                "kind": one.kill.kind,
                "victim": one.kill.victim,
                "at": one.at,
                "secondsToTheNextCommit": one.seconds,
                "restarts": one.restarts,
            }
            for one in findings.done
        ],
        "restarts": findings.restarts,
        "goodput": {**goodput, "wallClock": wall_clock(goodput, read_at=findings.read_at)},
        "figures": {f"{subject}: {name}": value for subject, name, value in _rows(findings)},
        "series": {
            growth.process: {"first": growth.series[0], "last": growth.series[1]}
            for growth in findings.growths
        },
        "operators": [vars(reading) for reading in findings.seen.operators],
        "ranks": [vars(reading) for reading in findings.seen.ranks],
        "objects": {name: list(map(str, found)) for name, found in vars(findings.objects).items()},
        "wrong": findings.judged(),
    }


def _kills(findings: Findings) -> Table:
    table = Table("killed", "times", "restart each", "status counted", "s to a newer commit")
    for kind, done in by_kind(findings.done).items():
        cause = done[0].kill.cause
        counted = sum(sum(one.restarts.values()) for one in done)
        seconds = " ".join(f"{one.seconds:.0f}" for one in done)
        table.add_row(kind, str(len(done)), cause.value if cause else "none", str(counted), seconds)
    return table


def _goodput(findings: Findings) -> Table:
    goodput = findings.status["goodput"]
    total = sum(goodput["seconds"].values())
    table = Table("training's time", "s", "share")
    for name, seconds in sorted(goodput["seconds"].items(), key=lambda item: -item[1]):
        table.add_row(name, f"{seconds:,.1f}", f"{seconds / total:.1%}")
    table.add_section()
    wall = wall_clock(goodput, read_at=findings.read_at)
    table.add_row("all", f"{total:,.1f}", f"of {wall:,.1f} s by the clock")
    table.add_row("goodput", "", f"{goodput['ratio']:.1%}")
    return table


def _figures(findings: Findings) -> Table:
    table = Table("subject", "figure", "found")
    for row in _rows(findings):
        table.add_row(*row)
    table.add_section()
    for subject, wrong in findings.judged().items():
        table.add_row(subject, "wrong" if wrong else "as it should be", "\n".join(wrong))
    return table


def _rows(findings: Findings) -> Iterator[Row]:
    stored, history, through = findings.stored, findings.history, findings.stored.newest
    samples = sum(map(len, history.committed(through).values()))
    made = history.made
    yield "samples", "committed steps", f"{through} of {made} that were made"
    yield "samples", "trained on, none twice an epoch", f"{samples:,}"
    yield "checkpoints", "kept, and allowed", f"{len(stored.commits)}, {findings.keep_last + 1}"
    yield "checkpoints", "given up, with files, uploads", _leftovers(findings)
    yield "checkpoints", "claims, and attempts", f"{len(stored.generations)}, {findings.attempts}"
    yield "checkpoints", "objects in all", str(len(stored.keys))
    for name, found in vars(findings.objects).items():
        yield "objects", f"in the namespace, {name}", str(len(found))
    events = findings.seen.events.values()
    yield "events", "about the job, of restarts", f"{len(events)}, {_failures(findings)}"
    for growth in findings.growths:
        yield from _growth_rows(growth)
    if ranks := findings.seen.ranks:
        numbers = [sum(reading.series.values()) for reading in (ranks[0], ranks[-1])]
        yield "rank 0", "series in the first attempt, in the last", "{}, {}".format(*numbers)
        yield "rank 0", "most files in /tmp", str(max(reading.files for reading in ranks))
    yield "readings", "looks; at the operator, at rank 0", _looks(findings)


def _growth_rows(growth: Growth) -> Iterator[Row]:
    first, last = growth.resident
    subject = f"operator {growth.process}"
    yield subject, "watched after its warm-up", f"{growth.seconds:.0f} s"
    yield subject, "memory", f"{first / MIB:.1f} to {last / MIB:.1f} MiB"
    yield subject, "slope of its memory", f"{growth.slope / MIB:+.1f} MiB an hour"
    yield subject, "open files", "{:g} to {:g}".format(*growth.files)
    yield subject, "threads", "{:g} to {:g}".format(*growth.threads)
    yield subject, "series", "{} to {}".format(*(sum(one.values()) for one in growth.series))


def _leftovers(findings: Findings) -> str:
    stored = findings.stored
    return f"{len(stored.abandoned)}, {len(stored.partial)}, {len(stored.uploads)}"


def _failures(findings: Findings) -> int:
    return sum(event.reason == FAILED for event in findings.seen.events.values())


def _looks(findings: Findings) -> str:
    seen = findings.seen
    leading = sum(reading.leads for reading in seen.operators)
    return f"{findings.looks}; {leading}, {len(seen.ranks)}"
