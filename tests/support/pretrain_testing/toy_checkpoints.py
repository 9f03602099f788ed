"""A run that only counts, with real checkpoints: for tests of the protocol without a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import torch
from pretrain_api.spec.lifecycle import CheckpointSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint import snapshot
from pretrain_jobs.checkpoint.cleaning import Retention, sweep_abandoned
from pretrain_jobs.checkpoint.completing import complete_newest
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.generations import Generation, claim
from pretrain_jobs.checkpoint.handing_over import hand_over
from pretrain_jobs.checkpoint.local_copy import LocalCopies
from pretrain_jobs.checkpoint.orders import Lineage
from pretrain_jobs.checkpoint.random_state import restore_random_state
from pretrain_jobs.checkpoint.restore import Restoration, restore
from pretrain_jobs.checkpoint.save import Saver
from pretrain_jobs.checkpoint.writer_process import WriterProcess
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.errors import StorageUnavailableError
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_jobs.storage.file import FileStore
from pretrain_jobs.train.keeper import Keeper
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.state import Progress

from pretrain_testing.thread_writers import ThreadWriter

SIZE = 20_000
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class ToyEngine:
    """Has what the checkpoint package uses of a DeepSpeed engine at ZeRO stage 1."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.weights = torch.zeros(SIZE)
        self.moments = torch.zeros(SIZE)
        self.checkpoint_engine: Any = None
        snapshot.prepare(self)

    def step(self) -> None:
        self.weights += 1.0
        self.moments += torch.rand(SIZE) + self.rank

    def save_checkpoint(self, directory: str, *, tag: str, save_latest: bool) -> None:
        assert directory
        assert not save_latest
        self.checkpoint_engine.create(None)
        if self.rank == 0:
            self.checkpoint_engine.save({"weights": self.weights}, f"{tag}/{snapshot.SHARED_FILE}")
        self.checkpoint_engine.save({"moments": self.moments}, f"{tag}/{self._own_file}")

    def load_checkpoint(self, directory: str, tag: str) -> None:
        place = Path(directory) / tag
        load = self.checkpoint_engine.load
        self.weights = load(str(place / snapshot.SHARED_FILE))["weights"]
        self.moments = load(str(place / self._own_file))["moments"]

    @property
    def _own_file(self) -> str:
        return f"zero_pp_rank_{self.rank}_mp_rank_00_optim_states.pt"


@dataclass
class ToyRun:
    """One attempt of one rank, after its start."""

    ranks: Ranks
    engine: ToyEngine
    keeper: Keeper
    progress: Progress
    restoration: Restoration

    def train(self, steps: Sequence[int]) -> None:
        for step in steps:
            self.engine.step()
            self.progress = Progress(step=step, cursor=self.progress.cursor)

    def begin(self) -> None:
        """Begin to save; the state may change after `copied`."""
        self.keeper.begin(self.progress)

    def save(self, *, last: bool = False) -> str:
        """Save and wait for the end; the failure, or nothing."""
        self.keeper.begin(self.progress, last=last, urgent=True)
        return self.keeper.saver.finish().failure


@dataclass(frozen=True)
class ToySettings:
    """Where and how a toy run keeps its checkpoints: by default in a directory under `root`.

    Their writer is a thread unless `spawned` asks for the real one: a process takes long to start.
    On a `node` whose name is given, saves are left there.
    """

    root: Path
    lineage: str = "own"
    keep_last: int = 2
    storage: StorageSpec | None = None
    environment: dict[str, str] = field(default_factory=dict)
    spawned: bool = False
    node: str = ""

    @property
    def local(self) -> Path | None:
        return self.root / self.node if self.node else None

    @property
    def spec(self) -> CheckpointSpec:
        return CheckpointSpec(keep_last=self.keep_last)

    @property
    def storage_spec(self) -> StorageSpec:
        return self.storage or StorageSpec(uri=f"file://{self.root}/store")

    @property
    def store(self) -> ObjectStore:
        return open_store(self.storage_spec)


def start(ranks: Ranks, settings: ToySettings, failpoints: Failpoints | None = None) -> ToyRun:
    """Claim, restore and make ready, as training does."""
    failpoints = failpoints or Failpoints()
    os.environ |= settings.environment
    store, engine = settings.store, ToyEngine(ranks.rank)
    torch.manual_seed(ranks.rank)
    own = Generation(0, uuid4().hex)
    if ranks.rank == 0:
        own = claim(store, attempt=own.attempt, lineage=settings.lineage)
    generation = ranks.broadcast(own)
    failpoints.reach("after_claim")
    copies = LocalCopies(settings.local) if settings.local else None
    if copies:
        hand_over(store, ranks, generation, copies, failpoints=failpoints)
        failpoints.reach("after_hand_over")
    if ranks.rank == 0:
        complete_newest(store, generation, lineage=settings.lineage, now=NOW)
        failpoints.reach("after_completion")
    scratch = settings.root / f"scratch-{generation.number}"
    restoration = restore(
        store,
        ranks,
        engine,
        lineage=settings.lineage,
        scratch=scratch,
        local=copies.store if copies else None,
        failpoints=failpoints,
    )
    restored = restoration.restored
    if copies:
        copies.clean(before=generation.number, kept=restored.commit.key if restored else None)
    retention = None
    if ranks.rank == 0:
        sweep_abandoned(store, generation, failpoints, now=NOW)
        retention = Retention(
            settings.spec,
            commits=set(restoration.commits),
            damaged=set(restoration.damaged),
            resumed_from=restored.commit.key if restored else None,
        )
    saver = Saver(
        store=store,
        group=ranks,
        generation=generation,
        lineage=Lineage(settings.lineage, zero_stage=1, versions={}),
        engine=engine,
        scratch=scratch,
        failpoints=failpoints,
        writer=WriterProcess(settings.storage_spec) if settings.spawned else ThreadWriter(store),
        local=settings.local,
        retention=retention,
    )
    progress = Progress(step=0, cursor=Cursor("toy", seed=1, samples_per_epoch=10))
    if restored:
        progress = Progress.from_json(restored.trainer)
        assert restored.rank_state is not None
        restore_random_state(restored.rank_state)
    keeper = Keeper(settings.spec, saver, lambda: 0.0)
    return ToyRun(ranks, engine, keeper, progress, restoration)


def state_of(run: ToyRun) -> dict[str, Any]:
    """What a test compares: step, weights and moments, the next random number, warnings."""
    return {
        "step": run.progress.step,
        "weights": float(run.engine.weights[0]),
        "moments": run.engine.moments.sum(dtype=torch.float64).item(),
        "random": torch.rand(1).item(),
        "warnings": list(run.restoration.warnings),
    }


def save_each(ranks: Ranks, settings: ToySettings, steps: Sequence[int]) -> dict[str, Any]:
    """Restore, then train and save these steps; the state at the end."""
    run = start(ranks, settings)
    for step in steps:
        run.train([step])
        assert not run.save()
    return state_of(run)


def save_the_last(ranks: Ranks, settings: ToySettings, step: int) -> None:
    """Restore, train one step and save it as the run's last."""
    run = start(ranks, settings)
    run.train([step])
    assert not run.save(last=True)


def restore_only(ranks: Ranks, settings: ToySettings) -> dict[str, Any]:
    """Restore; the state that was restored."""
    return state_of(start(ranks, settings))


def leave_the_second_save(ranks: Ranks, settings: ToySettings) -> bool:
    """Save step 1, then step 2 while the store takes no file; whether that is left on the nodes."""
    run = start(ranks, settings)
    run.train([1])
    assert not run.save()
    run.train([2])
    files: Any = FileStore

    def refuse(_store: FileStore, path: Path, key: str, **_options: Any) -> None:
        raise StorageUnavailableError(f"{key} cannot be written from {path} today")

    files.upload = refuse
    run.keeper.begin(run.progress, urgent=True)
    return run.keeper.saver.finish().kept


def die_in_start(ranks: Ranks, settings: ToySettings, point: str, victim: int) -> None:
    """Die at a failpoint of restoring or sweeping."""
    start(ranks, settings, Failpoints(f"{point}:kill" if ranks.rank == victim else ""))
    ranks.gather(None)


def die_in_second_save(ranks: Ranks, settings: ToySettings, point: str, victim: int) -> None:
    """Save step 1, then die at a failpoint in the save of step 2."""
    run = start(ranks, settings)
    run.train([1])
    assert not run.save()
    run.train([2])
    if ranks.rank == victim:
        run.keeper.saver.failpoints = Failpoints(f"{point}:kill")
    run.save()
    ranks.gather(None)


def fill_the_disk_once(ranks: Ranks, settings: ToySettings) -> dict[str, Any]:
    """Save step 1; let rank 1 have no room in the save of step 2; save step 3."""
    run = start(ranks, settings)
    run.train([1])
    assert not run.save()
    run.train([2])
    (writer,) = psutil.Process().children()
    limits = writer.rlimit(psutil.RLIMIT_FSIZE)
    if ranks.rank == 1:
        writer.rlimit(psutil.RLIMIT_FSIZE, (SIZE, limits[1]))
    failure = run.save()
    writer.rlimit(psutil.RLIMIT_FSIZE, limits)
    ranks.gather(None)
    run.train([3])
    later = run.save()  # by then the writers have deleted what the failed save left
    names = [path.name for path in settings.root.rglob("*")]
    return {
        "failure": failure,
        "failures": run.keeper.saver.failures,
        "left": [name for name in names if name.startswith(".pretrain-tmp")],
        "later": later,
        "committed": [info.key for info in settings.store.list("step-000000002")],
    }


def save_after_a_newer_attempt(ranks: Ranks, settings: ToySettings) -> None:
    """Start, let a newer attempt claim its generation, then save."""
    run = start(ranks, settings)
    run.train([1])
    if ranks.rank == 0:
        claim(settings.store, attempt=uuid4().hex, lineage="own")
    ranks.gather(None)
    run.save()


def save_a_bad_state(ranks: Ranks, settings: ToySettings) -> None:
    """Save a state in which rank 1 has a NaN."""
    run = start(ranks, settings)
    run.train([1])
    if ranks.rank == 1:
        run.engine.moments[5] = float("nan")
    run.save()


def kill_writers(
    ranks: Ranks, settings: ToySettings, points: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    """Save once for each pair of points at which ranks' writers are killed; then save once more."""
    run = start(ranks, settings)
    failures = []
    for step, armed in enumerate(points, start=1):
        run.train([step])
        point = armed[ranks.rank]
        run.keeper.saver.failpoints = Failpoints(f"{point}:kill-writer" if point else "")
        failures.append(run.save())
    run.keeper.saver.failpoints = Failpoints()
    run.train([len(points) + 1])
    assert not run.save()
    latest = run.keeper.saver.latest
    run.keeper.saver.close(tidily=True)
    return {"failures": failures, "latest": latest.step if latest else None}


def train_beside_a_stopped_writer(ranks: Ranks, settings: ToySettings) -> dict[str, Any]:
    """Save step 1 by writers that are stopped, train five steps, save in the third; go on."""
    run = start(ranks, settings)
    saver = run.keeper.saver
    saver.writer.start()
    (writer,) = psutil.Process().children()
    writer.suspend()
    ranks.gather(None)
    run.train([1])
    run.begin()
    ended = []
    for step in range(2, 7):
        saver.copied()
        run.train([step])
        ended.append(saver.ended())
        if step == 4:
            run.begin()
    ranks.gather(None)
    writer.resume()
    result = saver.finish()
    saver.close(tidily=True)
    return {
        "ended": ended,
        "skipped": run.keeper.skipped,
        "committed": result.status.step if result.status else None,
    }
