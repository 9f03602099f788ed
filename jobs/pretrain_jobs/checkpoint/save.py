"""Saving: agree on the state, write and upload every rank's files, then commit by one PUT.

    snapshot -> local files with hashes -> upload -> rank manifest -> (all ranks) -> COMMIT

A save that fails leaves older commits as they are, and training goes on. No rank's own trouble
ends a collective: each reports its outcome and all learn it.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from pretrain_api.reports import CheckpointStatus

from pretrain_jobs.checkpoint import snapshot
from pretrain_jobs.checkpoint.cleaning import delete_checkpoints
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.files import encode_json, write_file
from pretrain_jobs.checkpoint.generations import Generation, require_newest
from pretrain_jobs.checkpoint.group import Group
from pretrain_jobs.checkpoint.layout import LATEST, CheckpointKey
from pretrain_jobs.checkpoint.manifest import Commit, RankManifest, encode, root_hash
from pretrain_jobs.errors import InfrastructureError, NonFiniteError, StageError
from pretrain_jobs.storage import AlreadyExistsError, ObjectStore
from pretrain_jobs.storage.uri import join_uri

TRAINER_FILE = "trainer.json"
"""Rank 0's file with what all ranks have in common: step, cursor, counters, log."""

RANK_FILE = "rank.json"
"""Each rank's file with its own random generators and sums."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SaveResult:
    """A save's outcome, the same on every rank: the commit, or why there is none.

    `size` is in bytes, of all ranks' files.
    """

    status: CheckpointStatus | None
    failure: str = ""
    size: int = 0


@dataclass(frozen=True)
class Lineage:
    """What a commit says of the run that it belongs to."""

    fingerprint: str
    zero_stage: int
    versions: Mapping[str, str]


@dataclass
class Saver:
    """Saves this attempt's checkpoints. Every method but the clean-up ones is a collective."""

    store: ObjectStore
    group: Group
    generation: Generation
    lineage: Lineage
    engine: Any
    scratch: Path
    failpoints: Failpoints
    clock: Callable[[], datetime]
    latest: CheckpointStatus | None = None
    failures: int = 0
    _errors: list[StageError] = field(default_factory=list)

    def save(
        self, step: int, *, trainer: Mapping[str, Any], rank_state: Mapping[str, Any]
    ) -> SaveResult:
        """Save and commit; NonFiniteError or InfrastructureError (fenced) on every rank.

        A rank that does not come to the save is named on those that wait for it.
        `trainer` is rank 0's to give, `rank_state` each rank's own; both are JSON objects.
        """
        key = CheckpointKey(step, self.generation.number, self.generation.attempt)
        self.failpoints.reach("before_snapshot")
        self.group.meet()
        contents = self._contents(trainer, rank_state)
        self.failpoints.reach("after_snapshot")
        self._require_finite(step, contents)
        manifests, failure = self._exchange(self._store_rank(key, contents))
        if not failure:
            committed = self.group.broadcast(self._commit(key, manifests))
            if committed.fenced:
                raise InfrastructureError(committed.failure)
            failure = committed.failure
            self.latest = committed.status or self.latest
        if failure:
            self.failures += 1
            _log.warning("the checkpoint of step %d was not saved: %s", step, failure)
            self._discard(key)
            return SaveResult(None, failure)
        return SaveResult(self.latest, size=sum(manifest.size for manifest in manifests))

    def failure_of_this_rank(self) -> StageError | None:
        """The error that made the last failed save fail here, if it was here."""
        return self._errors[-1] if self._errors else None

    def _contents(
        self, trainer: Mapping[str, Any], rank_state: Mapping[str, Any]
    ) -> dict[str, Any]:
        own: dict[str, Any] = {RANK_FILE: dict(rank_state)}
        if self.group.rank == 0:
            own[TRAINER_FILE] = dict(trainer)
        return snapshot.capture(self.engine) | own

    def _require_finite(self, step: int, contents: Mapping[str, Any]) -> None:
        finite = self.group.gather(snapshot.all_finite(dict(contents)))
        if not all(finite):
            raise NonFiniteError(
                f"weights or optimizer moments of step {step} are not finite on rank "
                f"{finite.index(False)}; they were not saved, and older checkpoints stay"
            )

    def _store_rank(self, key: CheckpointKey, contents: Mapping[str, Any]) -> RankManifest | str:
        """Write and upload this rank's files and its manifest; the failure as a sentence."""
        directory = self.scratch / f"save-{self.group.rank:05d}"
        self._errors.clear()
        try:
            files = []
            for name in sorted(contents):
                self.failpoints.reach("during_local_write")
                files.append(write_file(directory / name, contents[name]))
            self.failpoints.reach("after_local_write")
            for file in files:
                self.store.upload(directory / file.name, key.rank_file(self.group.rank, file.name))
                self.failpoints.reach("during_rank_upload")
            self.failpoints.reach("after_rank_upload")
            manifest = RankManifest(
                rank=self.group.rank,
                step=key.step,
                generation=key.generation,
                attempt=key.attempt,
                files=tuple(files),
            )
            self.store.write(key.rank_manifest(self.group.rank), encode(manifest))
        except StageError as error:
            self._errors.append(error)
            return str(error)
        finally:
            shutil.rmtree(directory, ignore_errors=True)
        self.failpoints.reach("after_rank_manifest")
        return manifest

    def _exchange(self, own: RankManifest | str) -> tuple[list[RankManifest], str]:
        """All ranks' manifests, and the first rank's failure as a sentence."""
        told = self.group.gather(own)
        failures = [
            f"rank {rank}: {text}" for rank, text in enumerate(told) if isinstance(text, str)
        ]
        manifests = [said for said in told if isinstance(said, RankManifest)]
        return manifests, failures[0] if failures else ""

    def _commit(self, key: CheckpointKey, manifests: list[RankManifest]) -> _Committed:
        """Rank 0's part; other ranks pass an empty answer that the broadcast replaces."""
        if self.group.rank != 0:
            return _Committed()
        self.failpoints.reach("before_commit")
        try:
            require_newest(self.store, self.generation)
            status = self._put_commit(key, manifests)
        except InfrastructureError as error:
            return _Committed(failure=str(error), fenced=True)
        except StageError as error:
            self._errors.append(error)
            return _Committed(failure=str(error))
        self.failpoints.reach("after_commit")
        self._hint(status)
        return _Committed(status=status)

    def _put_commit(self, key: CheckpointKey, manifests: list[RankManifest]) -> CheckpointStatus:
        commit = Commit(
            step=key.step,
            generation=key.generation,
            attempt=key.attempt,
            lineage=self.lineage.fingerprint,
            world_size=self.group.world_size,
            zero_stage=self.lineage.zero_stage,
            versions=dict(self.lineage.versions),
            time=self.clock(),
            ranks=tuple(manifests),
            root_hash=root_hash(manifests),
        )
        data = encode(commit)
        try:
            self.store.write(key.commit, data, if_absent=True)
        except AlreadyExistsError:
            if self.store.read(key.commit) != data:
                raise
        return status_of(self.store, commit)

    def _hint(self, status: CheckpointStatus) -> None:
        hint = {"step": status.step, "uri": status.uri, "rootHash": status.sha256}
        try:
            self.store.write(LATEST, encode_json(hint))
        except StageError as error:
            _log.warning("the hint %s was not written: %s", LATEST, error)
        self.failpoints.reach("after_latest")

    def _discard(self, key: CheckpointKey) -> None:
        """Delete what an uncommitted save left; a later attempt sweeps what remains."""
        if self.group.rank == 0:
            delete_checkpoints(self.store, [key], self.failpoints)


@dataclass(frozen=True)
class _Committed:
    """What rank 0 tells the others of the commit."""

    status: CheckpointStatus | None = None
    failure: str = ""
    fenced: bool = False


def status_of(store: ObjectStore, commit: Commit) -> CheckpointStatus:
    """A commit as status and progress show it."""
    return CheckpointStatus(
        step=commit.step,
        uri=join_uri(store.uri, commit.key.prefix.rstrip("/")),
        sha256=commit.root_hash,
        time=commit.time,
    )
