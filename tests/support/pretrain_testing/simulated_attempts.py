"""Attempts of one run over a simulated store: the real protocol, without a model or processes.

Every rank is an actor of a turnstile. It claims, restores, and at each step has its writer store
its files and rank 0's commit, delete what is superseded and sweep. A rank's file holds its step and
number, so that what is restored tells whether it is what was saved.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from pretrain_api.spec.lifecycle import CheckpointSpec
from pretrain_jobs.checkpoint.cleaning import Retention, sweep_abandoned
from pretrain_jobs.checkpoint.completing import complete_newest
from pretrain_jobs.checkpoint.failpoints import Failpoint, Failpoints
from pretrain_jobs.checkpoint.files import encode_json
from pretrain_jobs.checkpoint.generations import Generation, claim, require_newest
from pretrain_jobs.checkpoint.handing_over import hand_over
from pretrain_jobs.checkpoint.layout import CheckpointKey, group_keys
from pretrain_jobs.checkpoint.local_copy import LocalCopies
from pretrain_jobs.checkpoint.manifest import Commit, decode_abandonment, decode_commit
from pretrain_jobs.checkpoint.orders import Commission, Lineage, Outcome, SaveOrder
from pretrain_jobs.checkpoint.restore import Restoration, restore
from pretrain_jobs.checkpoint.save import RANK_FILE, TRAINER_FILE
from pretrain_jobs.checkpoint.writing import RankWriter

from pretrain_testing.simulated_store import SimulatedStore
from pretrain_testing.turnstile import Turnstile

T = TypeVar("T")
LINEAGE = "own"
KEEP_LAST = 1
"""The least that a spec may keep, which leaves no other checkpoint to fall back to."""

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SKEWS = (timedelta(), timedelta(hours=1), timedelta(hours=-1))
"""By how much the clocks of attempts differ, one after the other."""

_NOTHING = Failpoints()


class _Gates(Failpoints):
    """Gates where a process can die between two writes to its node's disk."""

    def __init__(self, turnstile: Turnstile) -> None:
        super().__init__()
        self._turnstile = turnstile

    def reach(self, name: Failpoint) -> None:
        if name in ("during_local_write", "after_local_write", "after_local_copy"):
            self._turnstile.gate()


class NoEngine:
    """Stands for an engine: the state that counts here lies in the JSON documents."""

    def load_checkpoint(self, directory: str, tag: str) -> None:
        assert (Path(directory) / tag).is_dir()


@dataclass
class Meeting:
    """Where the ranks of one attempt exchange values, round by round."""

    rounds: list[dict[int, object]] = field(default_factory=list)


@dataclass
class SimulatedGroup:
    """One rank of an attempt, as the checkpoint package's Group."""

    rank: int
    world_size: int
    meeting: Meeting
    turnstile: Turnstile
    _round: int = 0

    def meet(self) -> None:
        self.gather(None)

    def gather(self, value: T) -> list[T]:
        if self._round == len(self.meeting.rounds):
            self.meeting.rounds.append({})
        told = self.meeting.rounds[self._round]
        self._round += 1
        told[self.rank] = value
        self.turnstile.gate(lambda: len(told) == self.world_size)
        return [told[rank] for rank in range(self.world_size)]  # type: ignore[misc]

    def broadcast(self, value: T) -> T:
        return self.gather(value)[0]


@dataclass(frozen=True)
class Start:
    """Where an attempt began: the newest commit when it claimed, and the step it restored."""

    newest_commit: int
    restored: int


@dataclass
class SimulatedRun:
    """A run of `steps` steps, each of which is saved; its attempts, dead and alive.

    `node_of` names the node of an attempt's rank on whose disk saves are left; "" where none is.
    """

    turnstile: Turnstile
    directory: Path
    world_size: int = 2
    steps: int = 3
    node_of: Callable[[int, int], str] = lambda _attempt, _rank: ""
    starts: dict[int, Start] = field(default_factory=dict)
    training: set[int] = field(default_factory=set)
    finished: bool = False
    attempts: int = 0
    store: SimulatedStore = field(init=False)

    def __post_init__(self) -> None:
        self.store = SimulatedStore(self.turnstile.gate)

    def begin_attempt(self) -> int:
        """Start another attempt, whatever the others do; its number."""
        self.attempts += 1
        number, meeting = self.attempts, Meeting()
        for rank in range(self.world_size):
            group = SimulatedGroup(rank, self.world_size, meeting, self.turnstile)
            self.turnstile.spawn(
                f"attempt {number} rank {rank}",
                f"attempt {number}",
                lambda group=group: _Rank(self, number, group).run(),  # type: ignore[misc]
            )
        return number

    def advance(self, number: int, requests: int) -> bool:
        """Let an attempt of one rank make so many requests; whether it would make more."""
        for _ in range(requests):
            waiting = [a for a in self.turnstile.waiting() if a.group == f"attempt {number}"]
            if not waiting:
                return False
            self.turnstile.let_pass(waiting[0])
            assert not self.torn_files()
        return True

    def commits(self) -> Iterator[Commit]:
        """Every commit that lies in the store now; DataError for one that cannot be read."""
        for listed in group_keys(self.store.objects):
            data = self.store.objects.get(listed.key.commit)
            if data is not None and decode_abandonment(data) is None:
                yield decode_commit(data, listed.key)

    def torn_files(self) -> list[str]:
        """Files that a commit vouches for and that are not, or not whole, in the store."""
        return [
            place
            for commit in self.commits()
            for manifest in commit.ranks
            for file in manifest.files
            if (place := commit.key.rank_file(manifest.rank, file.name)) not in self.store.objects
            or len(self.store.objects[place]) != file.size
        ]

    def newest_whole(self) -> int:
        """The newest step of which every rank's share lies in the store or on a node, not given up.

        Only what has a manifest counts: it is written last in both places.
        """
        nodes = [path.relative_to(self.directory).parts for path in self.directory.rglob("*.json")]
        left = {"/".join(parts[1:]) for parts in nodes}
        listing = group_keys({*self.store.objects, *left})
        whole = [
            listed.key.step
            for listed in listing
            if not listed.committed and listed.ranks == tuple(range(self.world_size))
        ]
        return max([*whole, self.newest_commit()], default=0)

    def newest_commit(self) -> int:
        """The step of the newest commit, 0 if there is none."""
        return max((commit.step for commit in self.commits()), default=0)


@dataclass
class _Rank:
    """One rank of one attempt."""

    run_: SimulatedRun
    number: int
    group: SimulatedGroup

    @property
    def now(self) -> datetime:
        return NOW + SKEWS[self.number % len(SKEWS)]

    @property
    def local(self) -> Path | None:
        node = self.run_.node_of(self.number, self.group.rank)
        return self.run_.directory / node if node else None

    def run(self) -> None:
        run, group = self.run_, self.group
        own = Generation(0, UUID(int=self.number).hex)
        newest = 0
        if group.rank == 0:
            own = claim(run.store, attempt=own.attempt, lineage=LINEAGE)
            newest = run.newest_commit()
        generation = group.broadcast(own)
        copies = LocalCopies(self.local) if self.local else None
        if copies:
            hand_over(run.store, group, generation, copies)
        if group.rank == 0:
            complete_newest(run.store, own, lineage=LINEAGE, now=NOW)
        restoration = restore(
            run.store,
            group,
            NoEngine(),
            lineage=LINEAGE,
            scratch=run.directory / f"attempt-{self.number}",
            local=copies.store if copies else None,
        )
        step = self._check(restoration)
        if copies:
            restored = restoration.restored
            kept = restored.commit.key if restored else None
            copies.clean(before=generation.number, kept=kept)
        retention = None
        if group.rank == 0:
            run.starts[self.number] = Start(newest, step)
            retention = _retention(restoration)
            sweep_abandoned(run.store, generation, _NOTHING, now=self.now)
        run.training.add(self.number)
        writer = RankWriter(run.store, clock=lambda: self.now, _failpoints=_Gates(run.turnstile))
        while step < run.steps:
            step += 1
            self._save(writer, generation, retention, step)
        run.finished = True

    def _save(
        self, writer: RankWriter, generation: Generation, retention: Retention | None, step: int
    ) -> None:
        """Save a step and learn every rank's outcome, as training does at a later step."""
        run, rank = self.run_, self.group.rank
        key = CheckpointKey(step, generation.number, generation.attempt)
        superseded = retention.superseded_by(key, last=step == run.steps) if retention else ()
        documents: dict[str, Any] = {RANK_FILE: {"step": step, "rank": rank}}
        if rank == 0:
            documents[TRAINER_FILE] = {"step": step}
        order = SaveOrder(
            key=key,
            rank=rank,
            contents={name: encode_json(document) for name, document in documents.items()},
            floats=(),
            size=0,
            directory=run.directory / f"attempt-{self.number}" / f"save-{rank}",
            failpoint="",
            local=self.local,
            commission=self._commission(generation, superseded) if rank == 0 else None,
        )
        outcome = writer.save(order, memoryview(b""), self._pause)
        outcomes: list[Outcome] = self.group.gather(outcome)
        if outcomes[0].error is not None:
            require_newest(run.store, generation)  # a newer one may have taken its files away
            raise outcomes[0].error
        if retention is not None:
            retention.committed(key, superseded)

    def _commission(
        self, generation: Generation, superseded: tuple[CheckpointKey, ...]
    ) -> Commission:
        return Commission(
            generation=generation,
            lineage=Lineage(LINEAGE, zero_stage=1, versions={}),
            world_size=self.group.world_size,
            patience_seconds=float("inf"),
            superseded=superseded,
        )

    def _pause(self, _seconds: float) -> bool:
        """Let others go on while rank 0 waits for their manifests."""
        self.run_.turnstile.gate()
        return False

    def _check(self, restoration: Restoration) -> int:
        """The step that was restored, once all of its parts have proved to be of it."""
        restored = restoration.restored
        if restored is None:
            return 0
        step: int = restored.trainer["step"]
        assert step == restored.commit.step
        assert restored.rank_state == {"step": step, "rank": self.group.rank}
        return step


def _retention(restoration: Restoration) -> Retention:
    restored = restoration.restored
    return Retention(
        spec=CheckpointSpec(keep_last=KEEP_LAST),
        commits=set(restoration.commits),
        damaged=set(restoration.damaged),
        resumed_from=restored.commit.key if restored else None,
    )
