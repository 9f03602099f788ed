"""The start of an attempt: claim a generation, restore, and make ready for saving.

A run's lineage is all that decides its weights but the number of ranks and their threads: a
checkpoint of another lineage is another run's, one of another number of ranks is this run's.
"""

from __future__ import annotations

import logging
import time
import uuid
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pretrain_api.fingerprints import fingerprint
from pretrain_api.stages import TrainStageConfig

from pretrain_jobs.checkpoint.cleaning import Retention, sweep_abandoned
from pretrain_jobs.checkpoint.committing import status_of
from pretrain_jobs.checkpoint.completing import complete_newest
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.generations import Generation, claim
from pretrain_jobs.checkpoint.handing_over import hand_over
from pretrain_jobs.checkpoint.local_copy import LocalCopies
from pretrain_jobs.checkpoint.orders import Lineage
from pretrain_jobs.checkpoint.random_state import restore_random_state, seed_random_state
from pretrain_jobs.checkpoint.restore import Restoration, restore
from pretrain_jobs.checkpoint.save import Saver
from pretrain_jobs.checkpoint.writer_process import WriterProcess
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.errors import StageError
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_jobs.train.engine import Engine
from pretrain_jobs.train.keeper import Keeper
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.state import Progress

_VERSIONS = ("torch", "deepspeed", "transformers", "numpy")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Resumption:
    """Where training stands, what was passed over to get there, and what keeps it from now on.

    `damaged` counts the commits of this run that cannot be trusted; `source` is where most bytes
    came from.
    """

    progress: Progress
    keeper: Keeper
    warnings: tuple[str, ...]
    damaged: int
    source: Literal["storage", "node"] = "storage"


def resume(
    config: TrainStageConfig,
    ranks: Ranks,
    engine: Engine,
    start: Cursor,
    *,
    scratch: Path,
    local: Path | None,
    failpoints: Failpoints,
) -> Resumption:
    """Restore the newest sound checkpoint, or begin at `start` if there never was one.

    A collective. `local` is the job's folder on a volume that outlives the pod; a path on all ranks
    or on none. The process's random generators are restored with it where as many ranks saved;
    otherwise each rank takes streams of its own that follow from seed, step and rank.
    """
    store = open_store(config.storage, config.checkpoint_uri)
    lineage = lineage_of(config)
    copies = LocalCopies(local) if local else None
    generation = _take_over(store, ranks, lineage, copies, failpoints)
    restoration = restore(
        store,
        ranks,
        engine.deepspeed,
        lineage=lineage,
        scratch=scratch,
        local=copies.store if copies else None,
        failpoints=failpoints,
    )
    if copies:
        _clean(copies, restoration, generation)
    saver = Saver(
        store=store,
        group=ranks,
        generation=generation,
        lineage=Lineage(
            fingerprint=lineage,
            zero_stage=config.training.zero.stage,
            versions={name: version(name) for name in _VERSIONS},
        ),
        engine=engine.deepspeed,
        scratch=scratch,
        failpoints=failpoints,
        writer=WriterProcess(config.storage, config.checkpoint_uri),
        local=local,
        retention=_retention(config, restoration) if ranks.rank == 0 else None,
    )
    if ranks.rank == 0:
        _tell(restoration)
        sweep_abandoned(store, generation, failpoints, now=datetime.now(UTC))
    keeper = Keeper(config.checkpoint, saver, time.monotonic)
    progress = _progress(restoration, start, generation)
    if restoration.restored is not None:
        saver.latest = status_of(store, restoration.restored.commit)
        if restoration.restored.rank_state is not None:
            restore_random_state(restoration.restored.rank_state)
        else:
            seed_random_state(config.training.seed, ranks.rank, step=progress.step)
    return Resumption(
        progress, keeper, restoration.warnings, len(restoration.damaged), _source(restoration)
    )


def _take_over(
    store: ObjectStore,
    ranks: Ranks,
    lineage: str,
    copies: LocalCopies | None,
    failpoints: Failpoints,
) -> Generation:
    """Claim a generation, and commit what the last attempt left whole. A collective."""
    generation = _claim(store, ranks, lineage)
    failpoints.reach("after_claim")
    if copies:
        hand_over(store, ranks, generation, copies, failpoints=failpoints)
        failpoints.reach("after_hand_over")
    if ranks.rank == 0:
        complete_newest(store, generation, lineage=lineage, now=datetime.now(UTC))
        failpoints.reach("after_completion")
    return generation


def _clean(copies: LocalCopies, restoration: Restoration, generation: Generation) -> None:
    """Delete what older attempts left on this node, but for what was resumed from."""
    restored = restoration.restored
    try:
        copies.clean(before=generation.number, kept=restored.commit.key if restored else None)
    except StageError as error:
        _log.warning("what older attempts left on this node was not deleted: %s", error)


def _source(restoration: Restoration) -> Literal["storage", "node"]:
    restored = restoration.restored
    return "node" if restored and restored.local_bytes > restored.stored_bytes else "storage"


def lineage_of(config: TrainStageConfig) -> str:
    """The fingerprint of the run that a config continues."""
    training = config.training.model_dump(
        mode="json", by_alias=True, exclude={"logging", "evaluation", "micro_batch_size"}
    )
    return fingerprint(
        kind="lineage",
        dataset=config.dataset_fingerprint,
        end_of_document=config.end_of_document,
        model=config.model,
        objective=config.objective,
        sequence_length=config.preprocess.sequence_length,
        packing=config.preprocess.packing,
        training=training,
    )


def _claim(store: ObjectStore, ranks: Ranks, lineage: str) -> Generation:
    own = Generation(0, uuid.uuid4().hex)
    if ranks.rank == 0:
        for weakness in store.probe():
            _log.warning("%s: %s", store.uri, weakness)
        own = claim(store, attempt=own.attempt, lineage=lineage)
    return ranks.broadcast(own)


def _retention(config: TrainStageConfig, restoration: Restoration) -> Retention:
    restored = restoration.restored
    return Retention(
        spec=config.checkpoint,
        commits=set(restoration.commits),
        damaged=set(restoration.damaged),
        resumed_from=restored.commit.key if restored else None,
    )


def _tell(restoration: Restoration) -> None:
    for warning in restoration.warnings:
        _log.warning("%s", warning)
    if restoration.restored is None:
        _log.info("no checkpoint of this run: training starts at step 1")
    else:
        restored = restoration.restored
        _log.info(
            "resuming after step %d (generation %d, saved by %d ranks); %.1f MB came from the "
            "nodes' own disks and %.1f MB from the store",
            restored.commit.step,
            restored.commit.generation,
            restored.commit.world_size,
            restored.local_bytes / 1e6,
            restored.stored_bytes / 1e6,
        )


def _progress(restoration: Restoration, start: Cursor, generation: Generation) -> Progress:
    """The stored state, with a line in the log that marks the resume; or a fresh one."""
    if restoration.restored is None:
        return Progress(step=0, cursor=start)
    progress = Progress.from_json(restoration.restored.trainer)
    mark = {"step": progress.step, "resumed": True, "generation": generation.number}
    return replace(progress, log=(*progress.log, mark))
