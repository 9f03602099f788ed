"""Ledgers: which samples each rank trained on at each step (see pretrain_jobs.train.ledger)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Ledger = dict[tuple[int, int], list[int]]
"""Sample ids by step and rank."""


def read_ledger(directory: Path) -> Ledger:
    """All entries; a step that ran again after a kill must have had the same samples."""
    ledger: Ledger = {}
    for path in sorted(directory.glob("*.jsonl")):
        for step, rank, samples in _entries(_whole_lines(path.read_bytes())):
            known = ledger.setdefault((step, rank), samples)
            assert known == samples, f"step {step} of rank {rank} had other samples"
    return ledger


def global_batches(directory: Path) -> dict[int, list[int]]:
    """Sample ids of each step's whole batch, rank after rank, of runs on any number of ranks.

    A step that ran again must have had the same samples.
    """
    batches: dict[int, list[int]] = {}
    generations = {path.name.partition("-rank-")[0] for path in directory.glob("*.jsonl")}
    for generation in sorted(generations):
        own: dict[int, list[int]] = {}
        for path in sorted(directory.glob(f"{generation}-rank-*.jsonl")):
            for step, _, samples in _entries(_whole_lines(path.read_bytes())):
                own.setdefault(step, []).extend(samples)
        for step, samples in own.items():
            known = batches.setdefault(step, samples)
            assert known == samples, f"step {step} had other samples in {generation}"
    return batches


def begun_after(directory: Path) -> dict[int, int]:
    """By generation, the step after which it went on; of those alone that made a step."""
    begun: dict[int, int] = {}
    for path in directory.glob("*.jsonl"):
        generation = int(path.name.split("-")[1])
        for step, _, _ in _entries(_whole_lines(path.read_bytes())):
            begun[generation] = min(step - 1, begun.get(generation, step))
    return begun


@dataclass
class NewestStep:
    """The newest step that any rank has finished; reads only what was written since last time."""

    directory: Path
    step: int = 0
    read: dict[Path, int] = field(default_factory=dict)

    def look(self) -> int:
        """The newest step by now, 0 before the first."""
        for path in self.directory.glob("*.jsonl"):
            with path.open("rb") as stream:
                stream.seek(self.read.get(path, 0))
                lines = _whole_lines(stream.read())
            if lines:
                self.read[path] = self.read.get(path, 0) + len(lines) + 1
                self.step = max(self.step, *(step for step, _, _ in _entries(lines)))
        return self.step


def _whole_lines(data: bytes) -> bytes:
    """What comes before the last line's end; a line may be read while it is written."""
    return data.rpartition(b"\n")[0]


def _entries(lines: bytes) -> Iterator[tuple[int, int, list[int]]]:
    for line in lines.splitlines():
        entry = json.loads(line)
        yield entry["step"], entry["rank"], entry["samples"]
