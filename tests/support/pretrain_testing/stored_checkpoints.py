"""Checkpoints written straight into a store, without a run: any bytes, real manifests."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime

from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.manifest import (
    Commit,
    FirstManifest,
    Origin,
    RankManifest,
    StoredFile,
    commit_of,
    encode,
)
from pretrain_jobs.storage import ObjectStore

ATTEMPT = "0" * 32


def store_checkpoint(
    store: ObjectStore,
    step: int,
    *,
    generation: int = 1,
    world_size: int = 2,
    lineage: str = "own",
    committed: bool = True,
) -> Commit:
    """Write the files of every rank, their manifests, and COMMIT unless it is to be missing."""
    key = CheckpointKey(step, generation, ATTEMPT)
    origin = Origin(lineage=lineage, world_size=world_size, zero_stage=1, versions={})
    ranks = [_store_rank(store, key, rank, origin) for rank in range(world_size)]
    commit = commit_of(key, origin, ranks, datetime(2026, 1, 1, tzinfo=UTC))
    if committed:
        store.write(key.commit, encode(commit))
    return commit


def _store_rank(store: ObjectStore, key: CheckpointKey, rank: int, origin: Origin) -> RankManifest:
    contents = {
        "rank.json": f'{{"rank": {rank}}}'.encode(),
        f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt": bytes([rank]) * 1000,
    }
    for name, data in contents.items():
        store.write(key.rank_file(rank, name), data)
    manifest = RankManifest(
        rank=rank,
        step=key.step,
        generation=key.generation,
        attempt=key.attempt,
        files=tuple(
            StoredFile(name=name, size=len(data), sha256=hashlib.sha256(data).hexdigest())
            for name, data in contents.items()
        ),
    )
    stored = FirstManifest(**manifest.model_dump(), origin=origin) if rank == 0 else manifest
    store.write(key.rank_manifest(rank), encode(stored))
    return manifest
