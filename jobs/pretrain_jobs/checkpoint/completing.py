"""Committing in a dead attempt's place what it had stored whole: it died before its COMMIT alone.

Whoever begins claims first and looks then. What it finds is bound by the same conditional write as
every commit: a mark that came first wins, and a commit by whomever stays.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import datetime

from pretrain_jobs.checkpoint.committing import status_of, write_hint
from pretrain_jobs.checkpoint.generations import Generation, require_newest
from pretrain_jobs.checkpoint.layout import LATEST, STEPS, Listed, group_keys
from pretrain_jobs.checkpoint.manifest import (
    Commit,
    commit_of,
    decode_abandonment,
    decode_first_manifest,
    decode_rank_manifest,
    encode,
)
from pretrain_jobs.errors import DataError, StageError
from pretrain_jobs.storage import AlreadyExistsError, NotFoundError, ObjectStore

_log = logging.getLogger(__name__)


def complete_newest(
    store: ObjectStore, generation: Generation, *, lineage: str, now: datetime
) -> None:
    """Commit the newest checkpoint of this run that is whole but for COMMIT, if it is the newest.

    Only what attempts before this one stored counts, and only above the last step that was ever
    committed: below it a missing COMMIT was taken away. An attempt that was replaced meanwhile
    commits nothing: the newer one may have, and may be deleting by now what it superseded. Nothing
    here can fail an attempt, which would then go on from an older commit.
    """
    try:
        commit = _newest_whole(store, generation, lineage, now)
        if commit is None:
            return
        require_newest(store, generation)
        store.write(commit.key.commit, encode(commit), if_absent=True)
        write_hint(store, status_of(store, commit))
    except AlreadyExistsError:
        _log.info("a checkpoint that was stored whole was committed or given up meanwhile")
    except StageError as error:
        _log.warning("whether a checkpoint was stored whole could not be told: %s", error)
    else:
        _log.info(
            "committed the checkpoint of step %d, which generation %d had stored whole",
            commit.step,
            commit.generation,
        )


def _newest_whole(
    store: ObjectStore, generation: Generation, lineage: str, now: datetime
) -> Commit | None:
    sizes = {info.key: info.size for info in store.list(STEPS)}
    bound = last_committed(store)
    for listed in group_keys(sizes):
        if listed.key.step <= bound:
            return None
        if listed.committed:
            if decode_abandonment(store.read(listed.key.commit)) is None:
                return None
        elif listed.key.generation < generation.number:
            commit = _whole(store, listed, sizes, now)
            if commit is not None and commit.lineage == lineage:
                return commit
    return None


def last_committed(store: ObjectStore) -> int:
    """The step that was committed last as far as the hint tells; 0 where it tells nothing."""
    try:
        return int(json.loads(store.read(LATEST))["step"])
    except (NotFoundError, ValueError, KeyError, TypeError):
        return 0


def _whole(
    store: ObjectStore, listed: Listed, sizes: Mapping[str, int], now: datetime
) -> Commit | None:
    """The commit of a checkpoint of which everything is there, in the sizes that were stored."""
    key = listed.key
    if key.rank_manifest(0) not in sizes:
        return None
    try:
        origin, first = decode_first_manifest(store.read(key.rank_manifest(0)), key)
        others = range(1, origin.world_size)
        if any(key.rank_manifest(rank) not in sizes for rank in others):
            return None
        manifests = [first] + [
            decode_rank_manifest(store.read(key.rank_manifest(rank)), key, rank) for rank in others
        ]
    except (DataError, NotFoundError) as error:
        _log.warning("the checkpoint of step %d is not completed: %s", key.step, error)
        return None
    wrong = [
        place
        for manifest in manifests
        for file in manifest.files
        if sizes.get(place := key.rank_file(manifest.rank, file.name)) != file.size
    ]
    if wrong:
        _log.warning("the checkpoint of step %d is not completed: %s", key.step, wrong[0])
        return None
    return commit_of(key, origin, manifests, now)
