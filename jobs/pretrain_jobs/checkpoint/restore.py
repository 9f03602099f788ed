"""Restoring: the newest committed checkpoint that every rank can verify, or a clear refusal.

The ranks of a node fetch and verify the files that they need, each once; one rank's doubt counts
for all. What was passed over is told, and when commits of this run exist and none is sound there
is no fresh start.

A checkpoint of another number of ranks is resharded as it is loaded: see `reshard`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pretrain_jobs.checkpoint import reshard, snapshot
from pretrain_jobs.checkpoint.checking import Owned
from pretrain_jobs.checkpoint.failpoints import UNARMED, Failpoints
from pretrain_jobs.checkpoint.fetch import Node, assign, fetch, find_node
from pretrain_jobs.checkpoint.files import read_json
from pretrain_jobs.checkpoint.group import Group
from pretrain_jobs.checkpoint.layout import CheckpointKey, rank_directory
from pretrain_jobs.checkpoint.manifest import Commit, StoredFile
from pretrain_jobs.checkpoint.partitions import Groups, Partitions, sources
from pretrain_jobs.checkpoint.save import RANK_FILE, TRAINER_FILE
from pretrain_jobs.checkpoint.survey import Survey, survey_store
from pretrain_jobs.errors import CheckpointUnusableError
from pretrain_jobs.storage import ObjectStore

_SHARED = (snapshot.SHARED_FILE, TRAINER_FILE)
"""Rank 0's files that every rank needs."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Restored:
    """The state that was loaded beside the engine's: rank 0's for all, and this rank's own.

    `rank_state` is None where another number of ranks saved: a rank's random generators belong to
    its share of the batch, and this rank's share is no former rank's. `local_bytes` came from the
    nodes' own disks and `stored_bytes` from the store, of all ranks together.
    """

    commit: Commit
    trainer: dict[str, Any]
    rank_state: dict[str, Any] | None
    local_bytes: int = 0
    stored_bytes: int = 0


@dataclass(frozen=True)
class Restoration:
    """The outcome, the same on every rank but for `restored.rank_state`.

    `commits` are this run's commits that exist, `damaged` those of them not to be trusted.
    """

    restored: Restored | None
    commits: frozenset[CheckpointKey]
    damaged: frozenset[CheckpointKey]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Chosen:
    """A sound checkpoint, and where its bytes came from, of all ranks together."""

    commit: Commit
    local_bytes: int
    stored_bytes: int


class _Gone(Exception):  # noqa: N818 - it is caught where it is raised for
    """A checkpoint was deleted by the attempt before this one, which still lives."""


def restore(
    store: ObjectStore,
    group: Group,
    engine: Any,
    *,
    lineage: str,
    scratch: Path,
    local: ObjectStore | None = None,
    failpoints: Failpoints = UNARMED,
) -> Restoration:
    """Load the newest sound checkpoint of this lineage into a fresh engine. A collective.

    What the node's `local` copies have, as COMMIT says it must be, is taken from there.
    Raises CheckpointUnusableError when there are commits and none is sound, and the storage's
    errors when it refuses to tell.
    """
    node = find_node(group, scratch / "restore")
    node.clear()
    while True:
        first = group.rank == 0
        survey = group.gather(survey_store(store, lineage=lineage) if first else Survey())[0]
        failpoints.reach("after_listing")
        try:
            chosen, reasons = _choose(
                store, group, engine, node, survey, local=local, failpoints=failpoints
            )
            break
        except _Gone:
            _log.info("a checkpoint was deleted while it was read; looking again")
    if chosen is None and reasons:
        raise CheckpointUnusableError(_nothing_sound(store, reasons))
    failpoints.reach("after_verification")
    restored = None
    if chosen is not None:
        restored = _load(engine, chosen.commit, group, node.place(chosen.commit.key))
        restored = replace(
            restored, local_bytes=chosen.local_bytes, stored_bytes=chosen.stored_bytes
        )
        failpoints.reach("after_loading")
    return Restoration(
        restored=restored,
        commits=frozenset({commit.key for commit in survey.candidates} | set(reasons)),
        damaged=frozenset(reasons),
        warnings=_warnings(survey, reasons, chosen.commit.key if chosen else None),
    )


def _choose(
    store: ObjectStore,
    group: Group,
    engine: Any,
    node: Node,
    survey: Survey,
    *,
    local: ObjectStore | None,
    failpoints: Failpoints,
) -> tuple[_Chosen | None, dict[CheckpointKey, str]]:
    """The newest sound candidate, its files fetched, and what speaks against newer ones.

    _Gone, on every rank, when one was deleted meanwhile.
    """
    reasons = dict(survey.damaged)
    for commit in survey.candidates:
        place = node.place(commit.key)
        owned = _share(commit, group, place, _groups(engine, commit, group.world_size))
        got = fetch(store, group, commit.key, place, owned, local=local, failpoints=failpoints)
        reason = next((f"rank {rank}: {text}" for rank, text in enumerate(got.doubts) if text), "")
        if not reason:
            told = group.gather((got.local_bytes, got.stored_bytes))
            return _Chosen(commit, *(sum(sizes) for sizes in zip(*told, strict=True))), reasons
        is_there = group.gather(group.rank > 0 or store.exists(commit.key.commit))[0]
        place.clear()
        if not is_there:
            raise _Gone
        reasons[commit.key] = reason
    return None, reasons


def needed_files(
    commit: Commit, rank: int, world_size: int, groups: Groups = ()
) -> tuple[Owned, ...]:
    """The files that a rank of `world_size` needs, each with the rank that saved it.

    `groups` are the engine's parameters; they tell whose parts a rank needs where another number
    of ranks has saved at ZeRO 1 to 3. At stage 0 rank 0's file is enough.
    """
    if commit.world_size == world_size:
        shared = [(0, file) for file in commit.ranks[0].files if rank and file.name in _SHARED]
        return (*shared, *((rank, file) for file in commit.ranks[rank].files))
    of_all = (TRAINER_FILE, snapshot.MODEL_SUFFIX)
    needed = [(0, file) for file in commit.ranks[0].files if file.name.endswith(of_all)]
    if groups:
        saved = _partitions(commit, groups, commit.world_size)
        owners = sources(saved, _partitions(commit, groups, world_size), rank)
        needed += [
            (owner, _file(commit, owner, snapshot.OPTIMIZER_SUFFIX)) for owner in sorted(owners)
        ]
    return tuple(needed)


def _groups(engine: Any, commit: Commit, world_size: int) -> Groups:
    """The engine's parameters by group, where a checkpoint of this stage must be resharded."""
    if commit.world_size == world_size or not commit.zero_stage:
        return ()
    return snapshot.parameter_groups(engine)


def _share(commit: Commit, group: Group, node: Node, groups: Groups) -> list[Owned]:
    """Those of the node's files that this rank is to fetch."""
    wanted = dict.fromkeys(
        owned
        for rank in node.members
        for owned in needed_files(commit, rank, group.world_size, groups)
    )
    return assign(list(wanted), node.members)[group.rank]


def _load(engine: Any, commit: Commit, group: Group, node: Node) -> Restored:
    """Load what was fetched, then delete it."""
    directory = node.directory / f"load-{group.rank:05d}"
    groups = _groups(engine, commit, group.world_size)
    if groups:
        _load_resharded(engine, commit, group, node, directory)
    else:
        _link(needed_files(commit, group.rank, group.world_size), node, directory)
        snapshot.load(engine, directory)
    same = commit.world_size == group.world_size
    restored = Restored(
        commit=commit,
        trainer=read_json(node.path(0, TRAINER_FILE)),
        rank_state=read_json(node.path(group.rank, RANK_FILE)) if same else None,
    )
    group.gather(None)
    node.clear()
    return restored


def _load_resharded(engine: Any, commit: Commit, group: Group, node: Node, load: Path) -> None:
    if group.rank == 0:
        _log.info("resharding from %d ranks to %d", commit.world_size, group.world_size)
    model = reshard.open_state(node.path(0, _file(commit, 0, snapshot.MODEL_SUFFIX).name))
    saved = _partitions(commit, reshard.saved_groups(model), commit.world_size)
    own = _partitions(commit, snapshot.parameter_groups(engine), group.world_size)
    paths = {
        owner: node.path(owner, _file(commit, owner, snapshot.OPTIMIZER_SUFFIX).name)
        for owner in sorted(sources(saved, own, group.rank))
    }
    state = reshard.reshard(engine, reshard.Saved(paths, saved), own, group.rank)
    reshard.load(engine, model=model, state=state, world_size=group.world_size, directory=load)


def _partitions(commit: Commit, groups: Groups, world_size: int) -> Partitions:
    return Partitions(groups, stage=commit.zero_stage, world_size=world_size)


def _file(commit: Commit, rank: int, suffix: str) -> StoredFile:
    """The one file of a rank whose name ends so."""
    for file in commit.ranks[rank].files:
        if file.name.endswith(suffix):
            return file
    raise CheckpointUnusableError(
        f"the checkpoint of step {commit.step} has no {rank_directory(rank)}/*{suffix}, which "
        f"another number of ranks needs; resume with {commit.world_size} ranks"
    )


def _link(files: Sequence[Owned], node: Node, directory: Path) -> None:
    """Give a rank its files under DeepSpeed's names in one directory."""
    directory.mkdir(parents=True)
    for owner, file in files:
        (directory / file.name).symlink_to(node.path(owner, file.name))


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
