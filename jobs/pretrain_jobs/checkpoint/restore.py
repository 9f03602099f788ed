"""Restoring: the newest committed checkpoint that every rank can verify, or a clear refusal.

Each rank reads and verifies the files that it needs; one rank's doubt counts for all. What was
passed over is told, and when commits of this run exist and none is sound there is no fresh start.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain_jobs.checkpoint import snapshot
from pretrain_jobs.checkpoint.files import read_json
from pretrain_jobs.checkpoint.group import Group
from pretrain_jobs.checkpoint.layout import (
    STEPS,
    CheckpointKey,
    Listed,
    group_keys,
    rank_directory,
)
from pretrain_jobs.checkpoint.manifest import Commit, StoredFile, decode_commit
from pretrain_jobs.checkpoint.save import RANK_FILE, TRAINER_FILE
from pretrain_jobs.errors import CheckpointUnusableError, DataError, UserError
from pretrain_jobs.storage import NotFoundError, ObjectStore

_SHARED = (snapshot.SHARED_FILE, TRAINER_FILE)
"""Rank 0's files that every rank needs."""


@dataclass(frozen=True)
class Survey:
    """What lies under the checkpoints' URI, seen from one run; all tuples the newest first.

    `candidates` are this run's readable commits; `damaged` are commits that cannot be read, with
    the reason; `foreign` are other runs'; `uncommitted` were never finished.
    """

    candidates: tuple[Commit, ...] = ()
    damaged: tuple[tuple[CheckpointKey, str], ...] = ()
    foreign: tuple[CheckpointKey, ...] = ()
    uncommitted: tuple[CheckpointKey, ...] = ()


@dataclass(frozen=True)
class Restored:
    """The state that was loaded beside the engine's: rank 0's for all, and this rank's own."""

    commit: Commit
    trainer: dict[str, Any]
    rank_state: dict[str, Any]


@dataclass(frozen=True)
class Restoration:
    """The outcome, the same on every rank but for `restored.rank_state`.

    `commits` are this run's commits that exist, `damaged` those of them not to be trusted.
    """

    restored: Restored | None
    commits: frozenset[CheckpointKey]
    damaged: frozenset[CheckpointKey]
    warnings: tuple[str, ...]


def restore(
    store: ObjectStore, group: Group, engine: Any, *, lineage: str, scratch: Path
) -> Restoration:
    """Load the newest sound checkpoint of this lineage into a fresh engine. A collective.

    Raises UserError for a checkpoint of another number of ranks, CheckpointUnusableError when
    there are commits and none is sound, and the storage's errors when it refuses to tell.
    """
    survey = group.broadcast(_survey(store, lineage) if group.rank == 0 else Survey())
    reasons = dict(survey.damaged)
    chosen: Commit | None = None
    directory = scratch / f"restore-{group.rank:05d}"
    for commit in survey.candidates:
        require_world_size(commit, group.world_size)
        if reason := _doubt(store, group, commit, directory):
            reasons[commit.key] = reason
            continue
        chosen = commit
        break
    if chosen is None and reasons:
        raise CheckpointUnusableError(_nothing_sound(store, reasons))
    restored = _load(engine, chosen, directory) if chosen else None
    return Restoration(
        restored=restored,
        commits=frozenset({commit.key for commit in survey.candidates} | set(reasons)),
        damaged=frozenset(reasons),
        warnings=_warnings(survey, reasons, chosen.key if chosen else None),
    )


def survey_keys(listing: Iterable[Listed], read: Callable[[str], bytes], *, lineage: str) -> Survey:
    """Sort a listing by what each COMMIT says; `read` gives an object's bytes."""
    candidates: list[Commit] = []
    damaged: list[tuple[CheckpointKey, str]] = []
    foreign: list[CheckpointKey] = []
    uncommitted: list[CheckpointKey] = []
    for listed in listing:
        if not listed.committed:
            uncommitted.append(listed.key)
            continue
        try:
            commit = decode_commit(read(listed.key.commit), listed.key)
        except DataError as error:
            damaged.append((listed.key, str(error)))
            continue
        if commit.lineage == lineage:
            candidates.append(commit)
        else:
            foreign.append(listed.key)
    return Survey(tuple(candidates), tuple(damaged), tuple(foreign), tuple(uncommitted))


def needed_files(commit: Commit, rank: int) -> tuple[tuple[int, StoredFile], ...]:
    """The files that a rank needs, each with the rank that wrote it."""
    shared = [(0, file) for file in commit.ranks[0].files if rank and file.name in _SHARED]
    return (*shared, *((rank, file) for file in commit.ranks[rank].files))


def require_world_size(commit: Commit, world_size: int) -> None:
    """UserError when a checkpoint was written by another number of ranks."""
    if commit.world_size != world_size:
        raise UserError(
            f"the checkpoint of step {commit.step} was written by {commit.world_size} ranks and "
            f"this job has {world_size}; set spec.workers.replicas and processesPerWorker so that "
            f"their product is {commit.world_size}, or start a new job"
        )


def _survey(store: ObjectStore, lineage: str) -> Survey:
    listing = group_keys(info.key for info in store.list(STEPS))
    return survey_keys(listing, store.read, lineage=lineage)


def _doubt(store: ObjectStore, group: Group, commit: Commit, directory: Path) -> str:
    """Fetch this rank's files; the first rank's reason against the checkpoint, or nothing."""
    shutil.rmtree(directory, ignore_errors=True)
    reasons = group.gather(_fetch(store, commit, group.rank, directory))
    return next((f"rank {rank}: {text}" for rank, text in enumerate(reasons) if text), "")


def _fetch(store: ObjectStore, commit: Commit, rank: int, directory: Path) -> str:
    """Download and verify a rank's files; what is wrong with the first bad one, or nothing."""
    for owner, file in needed_files(commit, rank):
        place = f"{rank_directory(owner)}/{file.name}"
        try:
            sha256 = store.download(commit.key.rank_file(owner, file.name), directory / file.name)
        except NotFoundError:
            return f"{place} is missing"
        size = (directory / file.name).stat().st_size
        if size != file.size:
            return f"{place} has {size} bytes instead of {file.size}"
        if sha256 != file.sha256:
            return f"{place} has another SHA-256 than its manifest"
    return ""


def _load(engine: Any, commit: Commit, directory: Path) -> Restored:
    snapshot.load(engine, directory)
    restored = Restored(
        commit=commit,
        trainer=read_json(directory / TRAINER_FILE),
        rank_state=read_json(directory / RANK_FILE),
    )
    shutil.rmtree(directory)
    return restored


def _warnings(
    survey: Survey, reasons: dict[CheckpointKey, str], chosen: CheckpointKey | None
) -> tuple[str, ...]:
    """A sentence for each checkpoint newer than the chosen one that is not used."""
    lines = {key: f"is not used: {reason}" for key, reason in reasons.items()}
    lines |= {
        key: "is not used: it has no COMMIT, so it was never finished"
        for key in survey.uncommitted
        if chosen is None or key > chosen
    }
    lines |= dict.fromkeys(survey.foreign, "belongs to a run with another model, data or training")
    return tuple(
        f"the checkpoint of step {key.step} (generation {key.generation}) {lines[key]}"
        for key in sorted(lines, reverse=True)
    )


def _nothing_sound(store: ObjectStore, reasons: dict[CheckpointKey, str]) -> str:
    found = "; ".join(f"step {key.step}: {reasons[key]}" for key in sorted(reasons)[::-1])
    return (
        f"{len(reasons)} committed checkpoints lie under {store.uri} and none can be used: "
        f"{found}. Training does not start afresh by itself; repair the files or delete the "
        "checkpoints"
    )
