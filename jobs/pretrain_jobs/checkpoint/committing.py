"""The commit, by rank 0's writer alone: every rank's manifest lies in the store and agrees.

No rank waits in a collective for another's upload. The fence is looked at last, the one PUT
follows, and it is read back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pretrain_api.reports import CheckpointStatus

from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.files import encode_json
from pretrain_jobs.checkpoint.generations import require_newest
from pretrain_jobs.checkpoint.layout import LATEST, CheckpointKey
from pretrain_jobs.checkpoint.manifest import (
    Commit,
    RankManifest,
    commit_of,
    decode_abandonment,
    decode_commit,
    decode_rank_manifest,
    encode,
)
from pretrain_jobs.checkpoint.orders import Commission
from pretrain_jobs.errors import InfrastructureError, StageError, StorageUnavailableError
from pretrain_jobs.storage import AlreadyExistsError, NotFoundError, ObjectStore
from pretrain_jobs.storage.uri import join_uri

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 2.0

_FENCE_SECONDS = 20.0
"""How often a wait looks whether a newer attempt has begun, which sweeps what is waited for."""

_log = logging.getLogger(__name__)

GaveUp = Callable[[float], bool]
"""Waits so many seconds at most to hear that there is nothing to wait for; whether it heard so."""


@dataclass(frozen=True)
class Committer:
    """Commits one checkpoint. `clock` gives the moment that COMMIT tells."""

    store: ObjectStore
    key: CheckpointKey
    commission: Commission
    failpoints: Failpoints
    clock: Callable[[], datetime]

    def wait_for_ranks(self, own: RankManifest, gave_up: GaveUp) -> list[RankManifest] | None:
        """Every rank's manifest by rank; None once it was given up.

        StorageUnavailableError when some rank has none within the commission's patience,
        InfrastructureError when a newer attempt has begun.
        """
        manifests = [own]
        pause, waited, looked = _FIRST_PAUSE, 0.0, 0.0
        while len(manifests) < self.commission.world_size:
            manifest = self._manifest(len(manifests))
            if manifest is not None:
                manifests.append(manifest)
                continue
            self.failpoints.reach("while_waiting_for_ranks")
            if waited >= self.commission.patience_seconds:
                raise StorageUnavailableError(
                    f"rank {len(manifests)} stored nothing within {waited:.0f} s after rank 0 did"
                )
            if gave_up(pause):
                return None
            waited, pause = waited + pause, min(2 * pause, _LONGEST_PAUSE)
            if waited - looked >= _FENCE_SECONDS:
                require_newest(self.store, self.commission.generation)
                looked = waited
        return manifests

    def commit(self, manifests: list[RankManifest]) -> CheckpointStatus:
        """Put COMMIT; InfrastructureError when a newer attempt has begun."""
        self.failpoints.reach("before_commit")
        require_newest(self.store, self.commission.generation)
        status = self._put(manifests)
        self.failpoints.reach("after_commit")
        write_hint(self.store, status)
        self.failpoints.reach("after_latest")
        return status

    def _manifest(self, rank: int) -> RankManifest | None:
        try:
            data = self.store.read(self.key.rank_manifest(rank))
        except NotFoundError:
            return None
        return decode_rank_manifest(data, self.key, rank)

    def _put(self, manifests: list[RankManifest]) -> CheckpointStatus:
        commit = commit_of(self.key, self.commission.origin, manifests, self.clock())
        data = encode(commit)
        try:
            self.store.write(self.key.commit, data, if_absent=True)
        except AlreadyExistsError:
            _log.info("%s lies there already", self.key.commit)
        stored = self._read_back()
        if mark := decode_abandonment(stored):
            raise InfrastructureError(
                f"the checkpoint of step {self.key.step} was given up by generation "
                f"{mark.abandoned_by}, which has replaced this attempt"
            )
        if stored != data:
            require_newest(self.store, self.commission.generation)
            raise StorageUnavailableError(f"{self.key.commit} came back changed")
        return status_of(self.store, commit)

    def _read_back(self) -> bytes:
        try:
            return self.store.read(self.key.commit)
        except NotFoundError:
            require_newest(self.store, self.commission.generation)
            raise StorageUnavailableError(f"{self.key.commit} was written and is gone") from None


def write_hint(store: ObjectStore, status: CheckpointStatus) -> None:
    """Say which commit is the newest; that it cannot be said fails nothing."""
    hint = {"step": status.step, "uri": status.uri, "rootHash": status.sha256}
    try:
        store.write(LATEST, encode_json(hint))
    except StageError as error:
        _log.warning("the hint %s was not written: %s", LATEST, error)


def committed(store: ObjectStore, key: CheckpointKey) -> CheckpointStatus | None:
    """The commit that lies under a key; None if there is none."""
    try:
        return status_of(store, decode_commit(store.read(key.commit), key))
    except NotFoundError:
        return None


def status_of(store: ObjectStore, commit: Commit) -> CheckpointStatus:
    """A commit as status and progress show it."""
    return CheckpointStatus(
        step=commit.step,
        uri=join_uri(store.uri, commit.key.prefix.rstrip("/")),
        sha256=commit.root_hash,
        time=commit.time,
    )
