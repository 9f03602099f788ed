"""What a writer does with a snapshot: files, upload, the rank's manifest, and rank 0's commit.

    local files with hashes -> upload -> rank manifest -> (all ranks' manifests) -> COMMIT

On a volume that outlives the pod the files stay, with a manifest of their own.

It runs beside training, in a process of its own (`writer`). Older commits stay as they are
whatever fails here.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from pretrain_jobs.checkpoint.cleaning import delete_checkpoints, withdraw_checkpoint
from pretrain_jobs.checkpoint.committing import Committer, GaveUp, committed
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.files import write_file
from pretrain_jobs.checkpoint.finite import all_finite
from pretrain_jobs.checkpoint.generations import require_newest
from pretrain_jobs.checkpoint.local_copy import LocalCopies
from pretrain_jobs.checkpoint.manifest import FirstManifest, RankManifest, encode
from pretrain_jobs.checkpoint.orders import (
    Commission,
    Companion,
    DiscardOrder,
    LookUpOrder,
    Outcome,
    SaveOrder,
)
from pretrain_jobs.errors import InfrastructureError, NonFiniteError, StageError
from pretrain_jobs.storage import ObjectStore
from pretrain_jobs.storage.local_files import translated
from pretrain_jobs.storage.streams import chunks

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Written:
    """A rank's files on a disk of this node."""

    directory: Path
    manifest: RankManifest


@dataclass
class RankWriter:
    """Carries out one rank's orders. `rank_process` is the one that trains."""

    store: ObjectStore
    clock: Callable[[], datetime]
    rank_process: int | None = None
    _failpoints: Failpoints = field(default_factory=Failpoints)
    _told: bool = False

    def save(self, order: SaveOrder, memory: memoryview, gave_up: GaveUp) -> Outcome:
        """Store a rank's files and, on rank 0, commit; never raises a StageError."""
        begun = time.monotonic()
        self._arm(order.failpoint)
        try:
            outcome = self._save(order, memory, gave_up)
        except StageError as error:
            outcome = Outcome(error=error)
        return replace(outcome, seconds=time.monotonic() - begun, kept=_is_kept(order))

    def look_up(self, order: LookUpOrder) -> Outcome:
        """How a save ended whose writer died after its rank's files were stored."""
        try:
            status = committed(self.store, order.key)
        except StageError as error:
            return Outcome(error=error)
        if status is None:
            return Outcome(error=InfrastructureError("the writer of rank 0 died before the commit"))
        return Outcome(status=status)

    def discard(self, order: DiscardOrder) -> None:
        """Delete what an uncommitted save left; a later attempt sweeps what remains."""
        self._arm(order.failpoint)
        withdraw_checkpoint(self.store, order.key, self._failpoints, now=self.clock())

    def _save(self, order: SaveOrder, memory: memoryview, gave_up: GaveUp) -> Outcome:
        if not all_finite(memory, order.floats):
            raise NonFiniteError("weights or optimizer moments are not finite")
        manifest = self._store_rank(order, memory)
        if order.commission is None:
            return Outcome(size=manifest.size)
        return self._commit(order, order.commission, manifest, gave_up)

    def _store_rank(self, order: SaveOrder, memory: memoryview) -> RankManifest:
        """Write a rank's files, on the node's own volume if there is one, and upload them.

        The manifest comes last in both places.
        """
        shutil.rmtree(order.directory, ignore_errors=True)
        try:
            written = self._keep(order, memory)
            if written is None or not self._upload_kept(order, written):
                written = self._write(order, memory, order.directory)
                self._upload(order, written)
        finally:
            shutil.rmtree(order.directory, ignore_errors=True)
        place = order.key.rank_manifest(order.rank)
        self.store.write(place, _stored(written.manifest, order.commission))
        self._failpoints.reach("after_rank_manifest")
        return written.manifest

    def _upload(self, order: SaveOrder, written: _Written) -> None:
        for file in written.manifest.files:
            place = order.key.rank_file(order.rank, file.name)
            self.store.upload(written.directory / file.name, place)
            self._failpoints.reach("during_rank_upload")
        self._failpoints.reach("after_rank_upload")

    def _upload_kept(self, order: SaveOrder, written: _Written) -> bool:
        """Upload from the node's own volume; False when that gives the files back no more."""
        try:
            self._upload(order, written)
        except StageError as error:
            if all(_is_readable(written.directory / file.name) for file in written.manifest.files):
                raise
            self._tell_once(error)
            return False
        return True

    def _keep(self, order: SaveOrder, memory: memoryview) -> _Written | None:
        """Write a rank's files where they outlive the pod; None if they cannot be written there."""
        if order.local is None:
            return None
        copies = LocalCopies(order.local)
        try:
            copies.make_room(order.key, order.rank)
            written = self._write(order, memory, copies.place(order.key, order.rank))
            manifest = _stored(written.manifest, order.commission)
            copies.vouch(order.key, order.rank, manifest)
        except StageError as error:
            self._tell_once(error)
            with suppress(StageError):
                copies.forget(order.key, order.rank)
            return None
        if order.urgent:
            _log.info("the files of step %d are on this node, and are uploaded", order.key.step)
        self._failpoints.reach("after_local_copy")
        return written

    def _write(self, order: SaveOrder, memory: memoryview, directory: Path) -> _Written:
        files = []
        for name in sorted(order.contents):
            self._failpoints.reach("during_local_write")
            files.append(write_file(directory / name, order.contents[name], memory))
        self._failpoints.reach("after_local_write")
        manifest = RankManifest(
            rank=order.rank,
            step=order.key.step,
            generation=order.key.generation,
            attempt=order.key.attempt,
            files=tuple(files),
        )
        return _Written(directory, manifest)

    def _tell_once(self, error: StageError) -> None:
        if not self._told:
            _log.warning("checkpoints go to the store but are not left on this node: %s", error)
        self._told = True

    def _commit(
        self, order: SaveOrder, commission: Commission, own: RankManifest, gave_up: GaveUp
    ) -> Outcome:
        """Wait for all ranks, commit, and tidy up; nothing of the latter can fail the save."""
        committer = Committer(self.store, order.key, commission, self._failpoints, self.clock)
        try:
            manifests = committer.wait_for_ranks(own, gave_up)
            if manifests is None:
                return Outcome(size=own.size)
            status = committer.commit(manifests)
        except InfrastructureError as error:
            return Outcome(error=error, fenced=True)
        try:
            require_newest(self.store, commission.generation)
        except InfrastructureError as error:
            return Outcome(error=error, fenced=True)
        except StageError as error:
            _log.warning("older checkpoints stay for now: %s", error)
            return Outcome(size=own.size, status=status)
        delete_checkpoints(self.store, commission.superseded, self._failpoints)
        self._failpoints.reach("after_retention")
        for companion in commission.companions:
            self._copy(companion, order.directory)
        return Outcome(size=own.size, status=status, gone=commission.superseded)

    def _copy(self, companion: Companion, directory: Path) -> None:
        """Upload what a file held when the save began; it may have grown since."""
        part = directory / companion.path.name
        try:
            with translated(companion.path, "copying"), companion.path.open("rb") as stream:
                directory.mkdir(parents=True, exist_ok=True)
                part.write_bytes(stream.read(companion.size))
            self.store.upload(part, companion.key)
        except StageError as error:
            _log.warning("%s was not copied to %s: %s", companion.path, self.store.uri, error)
        finally:
            shutil.rmtree(directory, ignore_errors=True)

    def _arm(self, setting: str) -> None:
        """Arm another failpoint than before; the same one goes on counting."""
        if setting != self._failpoints.setting:
            self._failpoints = Failpoints(setting, rank_process=self.rank_process)


def _is_readable(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return all(chunk for chunk in chunks(stream))
    except OSError:
        return False


def _is_kept(order: SaveOrder) -> bool:
    """Whether a rank's files lie whole on the node's own volume."""
    if order.local is None:
        return False
    with suppress(StageError):
        return LocalCopies(order.local).holds(order.key, order.rank)
    return False


def _stored(manifest: RankManifest, commission: Commission | None) -> bytes:
    """What is stored for a rank: rank 0's manifest tells what a commit would."""
    if commission is None:
        return encode(manifest)
    return encode(FirstManifest(**manifest.model_dump(), origin=commission.origin))
