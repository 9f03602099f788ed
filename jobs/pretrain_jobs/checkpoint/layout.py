"""Where the parts of a checkpoint lie: names to keys and back, and nothing else.

    gen-000007                               claimed once, by the attempt that writes under it
    step-000001200/000007-<attempt>/         a prefix of one attempt's own
        rank-00000/...                       files of a rank
        ranks/00000.json                     a rank's manifest
        COMMIT                               written last; it alone makes the checkpoint exist,
                                             unless a later attempt's mark lies there
    LATEST                                   a hint for people, never read here
    logs/                                    the log and the TensorBoard events so far

A name is never evidence that a checkpoint is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

COMMIT = "COMMIT"
LATEST = "LATEST"
LOGS = "logs/"
STEPS = "step-"
GENERATIONS = "gen-"

_CHECKPOINT = re.compile(r"step-(\d{9,})/(\d{6,})-([0-9a-f]{32})/(.+)")
_GENERATION = re.compile(r"gen-(\d{6,})")
_RANK_MANIFEST = re.compile(r"ranks/(\d{5,})\.json")


@dataclass(frozen=True, order=True)
class CheckpointKey:
    """The prefix of one checkpoint. Ordered by step, then by generation, as numbers."""

    step: int
    generation: int
    attempt: str

    @property
    def prefix(self) -> str:
        """The prefix of all its keys, with `/` at the end."""
        return f"{STEPS}{self.step:09d}/{self.generation:06d}-{self.attempt}/"

    @property
    def commit(self) -> str:
        """The key of what makes the checkpoint exist, or of the mark that it was given up."""
        return self.prefix + COMMIT

    def rank_manifest(self, rank: int) -> str:
        """The key of a rank's manifest."""
        return f"{self.prefix}ranks/{rank:05d}.json"

    def rank_file(self, rank: int, name: str) -> str:
        """The key of a rank's file."""
        return f"{self.prefix}{rank_directory(rank)}/{name}"


def rank_directory(rank: int) -> str:
    """The directory of a rank's files under a checkpoint."""
    return f"rank-{rank:05d}"


def generation_key(generation: int) -> str:
    """The key by which a generation is claimed."""
    return f"{GENERATIONS}{generation:06d}"


def parse_generation(key: str) -> int | None:
    """The generation that a key claims; None for any other key."""
    match = _GENERATION.fullmatch(key)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class Listed:
    """What a listing tells of one checkpoint: all its keys. Committed only if COMMIT is there."""

    key: CheckpointKey
    keys: tuple[str, ...]

    @property
    def files(self) -> tuple[str, ...]:
        """All keys but that of COMMIT or of a mark in its place."""
        return tuple(key for key in self.keys if key != self.key.commit)

    @property
    def ranks(self) -> tuple[int, ...]:
        """The ranks whose manifests are there, in ascending order."""
        matches = (_RANK_MANIFEST.fullmatch(key.removeprefix(self.key.prefix)) for key in self.keys)
        return tuple(sorted(int(match[1]) for match in matches if match))

    @property
    def committed(self) -> bool:
        """Whether COMMIT was written; whether it can be trusted only its content tells."""
        return self.key.commit in self.keys


def group_keys(keys: Iterable[str]) -> tuple[Listed, ...]:
    """The checkpoints among some keys, the newest first; keys of other things are left out."""
    groups: dict[CheckpointKey, list[str]] = {}
    for checkpoint, key in _parse(keys):
        groups.setdefault(checkpoint, []).append(key)
    ordered = sorted(groups, reverse=True)
    return tuple(Listed(checkpoint, tuple(sorted(groups[checkpoint]))) for checkpoint in ordered)


def _parse(keys: Iterable[str]) -> Iterator[tuple[CheckpointKey, str]]:
    for key in keys:
        if match := _CHECKPOINT.fullmatch(key):
            yield CheckpointKey(int(match[1]), int(match[2]), match[3]), key
