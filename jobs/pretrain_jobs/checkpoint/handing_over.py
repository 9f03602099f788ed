"""Giving to the store, at an attempt's start, what nodes were left with: a save never uploaded.

An attempt that was killed after its ranks had written their files, and before all were uploaded,
leaves them on the nodes' own volumes. Its successor uploads what is missing, under the same names,
so that the checkpoint can be committed as any other that lies whole (see `completing`). It decides
nothing itself: a commit or a mark that lies in COMMIT's place stays, and below the last step that
was committed nothing is looked at.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from pretrain_jobs.checkpoint.checking import read_and_check
from pretrain_jobs.checkpoint.completing import last_committed
from pretrain_jobs.checkpoint.failpoints import UNARMED, Failpoints
from pretrain_jobs.checkpoint.generations import Generation, owner, require_newest
from pretrain_jobs.checkpoint.group import Group
from pretrain_jobs.checkpoint.layout import STEPS, CheckpointKey, Listed, group_keys
from pretrain_jobs.checkpoint.local_copy import LocalCopies, Part
from pretrain_jobs.checkpoint.manifest import (
    StoredFile,
    decode_abandonment,
    decode_first_manifest,
)
from pretrain_jobs.checkpoint.rounds import transfer
from pretrain_jobs.errors import StageError
from pretrain_jobs.storage import NotFoundError, ObjectStore

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Errand:
    """A checkpoint that nodes can make whole: who of this attempt's ranks uploads which share."""

    key: CheckpointKey
    carriers: Mapping[int, int]


def hand_over(
    store: ObjectStore,
    group: Group,
    generation: Generation,
    copies: LocalCopies,
    *,
    failpoints: Failpoints = UNARMED,
) -> None:
    """Upload what older attempts left on nodes and the newest checkpoint lacks. A collective.

    Of several the newest is taken, an older one only if that one cannot be made whole. Nothing
    here can fail an attempt, which would then go on from an older commit.
    """
    told = group.gather(_held(copies, generation))
    if not any(holding.parts for holding in told):
        return
    errands = group.broadcast(_errands(store, generation, told) if group.rank == 0 else ())
    for errand in errands:
        if _carry_out(errand, _Carrier(store, copies, failpoints), group):
            return


@dataclass(frozen=True)
class Holding:
    """What lies whole on a rank's node; how many ranks saved is told where rank 0's share lies."""

    parts: tuple[Part, ...] = ()
    world_sizes: Mapping[CheckpointKey, int] = field(default_factory=dict)


def plan(
    held: Sequence[Holding], stored: Collection[Part], world_sizes: Mapping[CheckpointKey, int]
) -> tuple[Errand, ...]:
    """How the saves can be made whole that the store and the nodes have all shares of; by rank.

    The newest comes first. Each share is carried once: by the rank of its number where that has
    it, else the shares are dealt out to those that do.
    """
    holders: dict[Part, list[int]] = {}
    for rank, holding in enumerate(held):
        world_sizes = {**world_sizes, **holding.world_sizes}
        for part in holding.parts:
            holders.setdefault(part, []).append(rank)
    errands = []
    for key in sorted({key for key, _ in holders}, reverse=True):
        shares = [(key, rank) for rank in range(world_sizes.get(key, 0))]
        missing = [part for part in shares if part not in stored]
        if missing and all(part in holders for part in missing):
            carriers = {rank: _carrier(rank, holders[key, rank]) for key, rank in missing}
            errands.append(Errand(key, carriers))
    return tuple(errands)


def _carrier(rank: int, holders: Sequence[int]) -> int:
    return rank if rank in holders else holders[rank % len(holders)]


def _held(copies: LocalCopies, generation: Generation) -> Holding:
    try:
        parts = copies.parts(before=generation.number)
        sizes = {key: copies.world_size(key) for key, rank in parts if rank == 0}
    except StageError as error:
        _log.warning("what was left on this node could not be looked at: %s", error)
        return Holding()
    return Holding(tuple(parts), sizes)


def _errands(
    store: ObjectStore, generation: Generation, held: Sequence[Holding]
) -> tuple[Errand, ...]:
    """The saves to hand over, the newest first; rank 0's to find out.

    A save counts if the run that the store knows has made it, after the last step that was ever
    committed, and if no attempt has given it up.
    """
    try:
        require_newest(store, generation)
        listing = group_keys(info.key for info in store.list(STEPS))
        bound = max(last_committed(store), _newest_commit(store, listing))
        closed = {listed.key for listed in listing if listed.committed}
        stored = {(listed.key, rank) for listed in listing for rank in listed.ranks}
        sizes = {
            key: decode_first_manifest(store.read(key.rank_manifest(0)), key)[0].world_size
            for key, rank in stored
            if rank == 0 and key.step > bound
        }
        return tuple(
            errand
            for errand in plan(held, stored, sizes)
            if errand.key.step > bound
            and errand.key not in closed
            and owner(store, errand.key.generation) == errand.key.attempt
        )
    except StageError as error:
        _log.warning("what was left on the nodes is not uploaded: %s", error)
        return ()


def _newest_commit(store: ObjectStore, listing: Sequence[Listed]) -> int:
    for listed in listing:
        if listed.committed and decode_abandonment(store.read(listed.key.commit)) is None:
            return listed.key.step
    return 0


def _carry_out(errand: Errand, carrier: _Carrier, group: Group) -> bool:
    """Upload all shares that are missing; whether nothing went wrong with any. A collective."""
    key = errand.key
    mine = [rank for rank, carrying in errand.carriers.items() if carrying == group.rank]
    doubts = transfer(
        group,
        [partial(carrier.carry, key, rank) for rank in mine],
        transferred=lambda: sum(carrier.carried),
        tell=lambda size: _log.info("step %d: %.1f GB of the nodes uploaded", key.step, size / 1e9),
    )
    for rank, doubt in enumerate(doubts):
        if doubt and group.rank == 0:
            _log.warning("step %d is not made whole: rank %d: %s", key.step, rank, doubt)
    return not any(doubts)


@dataclass(frozen=True)
class _Carrier:
    """Uploads shares from this node; `carried` are the bytes of each file that is done."""

    store: ObjectStore
    copies: LocalCopies
    failpoints: Failpoints
    carried: list[int] = field(default_factory=list)

    def carry(self, key: CheckpointKey, rank: int) -> str:
        """Upload a share, its manifest last, once all of it was read; what is wrong, or nothing."""
        try:
            manifest = self.copies.manifest(key, rank)
            for file in manifest.files:
                if doubt := read_and_check(self.copies.store, key, (rank, file)):
                    return doubt
            for file in manifest.files:
                self._upload(key, rank, file)
            place = key.rank_manifest(rank)
            self.store.write(place, self.copies.store.read(place))
        except StageError as error:
            return str(error)
        _log.info("step %d: rank %d's files were uploaded from this node", key.step, rank)
        return ""

    def _upload(self, key: CheckpointKey, rank: int, file: StoredFile) -> None:
        place = key.rank_file(rank, file.name)
        if _size(self.store, place) != file.size:
            self.store.upload(self.copies.place(key, rank) / file.name, place)
        self.carried.append(file.size)
        self.failpoints.reach("during_hand_over")


def _size(store: ObjectStore, key: str) -> int | None:
    try:
        return store.head(key).size
    except NotFoundError:
        return None
