"""The committed history of a training by its ledgers: which sample was trained on when.

An attempt that is lost has made steps that nobody goes on from; of those that were made again, the
last to make them counts, and must have had the same samples.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

_FILE = re.compile(r"generation-(\d+)-rank-\d+\.jsonl")
_TOLD = 3
"""Steps or samples that a sentence names at most."""

Sample = tuple[int, int]
"""Epoch and id."""

Made = Mapping[tuple[int, int], tuple[Sample, ...]]
"""What was trained on by step and rank."""


@dataclass(frozen=True)
class History:
    """Ledgers of all attempts by generation."""

    generations: Mapping[int, Made] = field(default_factory=dict)

    @property
    def made(self) -> int:
        """Steps that any rank 0 has made, those made again counted each time."""
        return sum(rank == 0 for made in self.generations.values() for _, rank in made)

    def committed(self, through: int) -> dict[tuple[int, int], tuple[Sample, ...]]:
        """Samples by step and rank up to a step; of a step made again those of the last time."""
        found: dict[tuple[int, int], tuple[Sample, ...]] = {}
        for _, made in sorted(self.generations.items()):
            found |= {key: samples for key, samples in made.items() if key[0] <= through}
        return found


def read_history(directory: Path) -> History:
    """All ledgers in a directory; a last line that was not written to its end is left out."""
    generations: dict[int, dict[tuple[int, int], tuple[Sample, ...]]] = {}
    for path in sorted(directory.iterdir()):
        if match := _FILE.fullmatch(path.name):
            generations.setdefault(int(match[1]), {}).update(_entries(path))
    return History(generations)


def judge_history(history: History, *, through: int, ranks: int) -> list[str]:
    """A sentence for each way in which samples were repeated, skipped or exchanged."""
    committed = history.committed(through)
    return [
        *_exchanged(history),
        *_missing(committed, through=through, ranks=ranks),
        *_repeated(committed),
        *_skipped(committed),
    ]


def _entries(path: Path) -> Iterator[tuple[tuple[int, int], tuple[Sample, ...]]]:
    for line in path.read_bytes().rpartition(b"\n")[0].splitlines():
        entry = json.loads(line)
        samples = zip(entry["epochs"], entry["samples"], strict=True)
        yield (entry["step"], entry["rank"]), tuple(samples)


def _exchanged(history: History) -> Iterator[str]:
    for (_, before), (number, made) in pairwise(_accumulated(history)):
        changed = sorted(key for key in made if before.get(key, made[key]) != made[key])
        if changed:
            names = ", ".join(f"{step} of rank {rank}" for step, rank in changed[:_TOLD])
            yield (
                f"{len(changed)} steps had other samples when generation {number} made them again,"
                f" such as {names}."
            )


def _accumulated(history: History) -> Iterator[tuple[int, Made]]:
    """Each generation's steps, laid over all that came before it."""
    known: dict[tuple[int, int], tuple[Sample, ...]] = {}
    yield 0, dict(known)
    for number, made in sorted(history.generations.items()):
        known |= made
        yield number, dict(known)


def _missing(committed: Made, *, through: int, ranks: int) -> Iterator[str]:
    wanted = {(step, rank) for step in range(1, through + 1) for rank in range(ranks)}
    missing = sorted(wanted - committed.keys())
    if missing:
        names = ", ".join(f"{step} of rank {rank}" for step, rank in missing[:_TOLD])
        yield f"{len(missing)} of {len(wanted)} committed steps are in no ledger, such as {names}."


def _repeated(committed: Made) -> Iterator[str]:
    counted = Counter(sample for samples in committed.values() for sample in samples)
    repeated = sorted(sample for sample, count in counted.items() if count > 1)
    if repeated:
        names = ", ".join(f"{sample} in epoch {epoch}" for epoch, sample in repeated[:_TOLD])
        yield f"{len(repeated)} samples were trained on more than once an epoch, such as {names}."


def _skipped(committed: Made) -> Iterator[str]:
    """Every epoch but the last has all samples that any epoch has."""
    epochs: dict[int, set[int]] = {}
    for samples in committed.values():
        for epoch, sample in samples:
            epochs.setdefault(epoch, set()).add(sample)
    every = set().union(*epochs.values())
    for epoch in sorted(epochs)[:-1]:
        skipped = sorted(every - epochs[epoch])
        if skipped:
            names = ", ".join(map(str, skipped[:_TOLD]))
            yield f"Epoch {epoch} left out {len(skipped)} of {len(every)} samples, such as {names}."
