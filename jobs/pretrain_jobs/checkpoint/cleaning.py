"""Deleting checkpoints: after a newer commit, and what dead attempts left.

Nothing here can fail an attempt: what cannot be deleted now is left to a later commit or attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pretrain_api.spec.lifecycle import CheckpointSpec

from pretrain_jobs.checkpoint.failpoints import Failpoint, Failpoints
from pretrain_jobs.checkpoint.generations import Generation, newest
from pretrain_jobs.checkpoint.layout import STEPS, CheckpointKey, Listed, group_keys
from pretrain_jobs.checkpoint.manifest import Abandonment, decode_abandonment, encode
from pretrain_jobs.checkpoint.retention import deletion_order, superseded
from pretrain_jobs.errors import StageError
from pretrain_jobs.storage import AlreadyExistsError, NotFoundError, ObjectStore
from pretrain_jobs.storage.base import SWEEP_AGE_SECONDS

_log = logging.getLogger(__name__)


@dataclass
class Retention:
    """The commits of this run that exist, and which of them must go. Rank 0's alone.

    `resumed_from` is kept until the run's last commit, whatever the numbers say.
    """

    spec: CheckpointSpec
    commits: set[CheckpointKey] = field(default_factory=set)
    damaged: set[CheckpointKey] = field(default_factory=set)
    resumed_from: CheckpointKey | None = None

    def superseded_by(self, key: CheckpointKey, *, last: bool) -> tuple[CheckpointKey, ...]:
        """The commits that a new one makes superfluous, the oldest first."""
        protected = {self.resumed_from} if self.resumed_from and not last else set()
        return superseded(
            {*self.commits, key},
            keep_last=self.spec.keep_last,
            keep_every_steps=self.spec.keep_every_steps,
            kept=protected,
            damaged=self.damaged,
        )

    def committed(self, key: CheckpointKey, gone: Iterable[CheckpointKey]) -> None:
        """Take in a new commit, and that others were deleted for it."""
        self.commits.add(key)
        self.commits.difference_update(gone)


def delete_checkpoints(
    store: ObjectStore, keys: Iterable[CheckpointKey], failpoints: Failpoints
) -> None:
    """Delete all objects of some checkpoints, each one's COMMIT first."""
    try:
        for key in keys:
            _delete(store, deletion_order(_listed(store, key)), failpoints)
    except StageError as error:
        _log.warning("old checkpoints could not be deleted: %s", error)


def withdraw_checkpoint(
    store: ObjectStore, key: CheckpointKey, failpoints: Failpoints, *, now: datetime
) -> bool:
    """Delete what a failed save of this very attempt left; False if it was committed after all.

    A commit whose answer was lost may still be on its way: the mark keeps it out until the files
    are gone. Then the mark goes too, for the attempt may save the same step again; but not when a
    newer attempt has begun, which may just be about to commit what it saw before.
    """
    try:
        listed = _listed(store, key)
        if _mark_of(store, listed, key.generation, now) is None:
            _log.warning("the checkpoint of step %d is committed after all and stays", key.step)
            return False
        _delete(store, listed.files, failpoints)
        if newest(store) <= key.generation:
            store.delete(key.commit)
    except StageError as error:
        _log.warning("what a failed save left was not deleted: %s", error)
    return True


def give_up_checkpoint(store: ObjectStore, key: CheckpointKey, generation: int) -> None:
    """Do at a person's wish what a later attempt would: mark, then delete; a commit stays."""
    _sweep_checkpoint(store, _listed(store, key), generation, Failpoints(), datetime.now(UTC))


def sweep_abandoned(
    store: ObjectStore, generation: Generation, failpoints: Failpoints, *, now: datetime
) -> None:
    """Delete what attempts before this one left without a commit, half-written files included."""
    try:
        listing = group_keys(info.key for info in store.list(STEPS))
    except StageError as error:
        _log.warning("leftovers of older attempts could not be looked for: %s", error)
        return
    for listed in sorted(listing, key=lambda listed: listed.key):
        if listed.key.generation < generation.number:
            _sweep_checkpoint(store, listed, generation.number, failpoints, now)
    _sweep(store, STEPS, older_than_seconds=SWEEP_AGE_SECONDS)
    failpoints.reach("after_sweep")


def _sweep_checkpoint(
    store: ObjectStore,
    listed: Listed,
    generation: int,
    failpoints: Failpoints,
    now: datetime,
) -> None:
    """Make sure that a checkpoint cannot be committed any more, then delete its files.

    The mark that makes sure stays for a day: its attempt may only be stopped, and go on.
    """
    try:
        mark = _mark_of(store, listed, generation, now)
        if mark is None:
            return
        failpoints.reach("after_mark")
        _sweep(store, listed.key.prefix, older_than_seconds=0.0)
        _delete(store, listed.files, failpoints, "during_sweep")
        if (now - mark.time).total_seconds() > SWEEP_AGE_SECONDS:
            store.delete(listed.key.commit)
    except StageError as error:
        _log.warning("what an older attempt left was not deleted: %s", error)


def _listed(store: ObjectStore, key: CheckpointKey) -> Listed:
    return Listed(key, tuple(info.key for info in store.list(key.prefix)))


def _delete(
    store: ObjectStore,
    names: Iterable[str],
    failpoints: Failpoints,
    point: Failpoint = "during_retention",
) -> None:
    for name in names:
        store.delete(name)
        failpoints.reach(point)


def _mark_of(
    store: ObjectStore, listed: Listed, generation: int, now: datetime
) -> Abandonment | None:
    """The mark in COMMIT's place, made now if nothing lies there; None for a commit."""
    mark = Abandonment(abandoned_by=generation, time=now)
    try:
        if not listed.committed:
            store.write(listed.key.commit, encode(mark), if_absent=True)
            return mark
    except AlreadyExistsError:
        _log.info("%s was written meanwhile", listed.key.commit)
    try:
        return decode_abandonment(store.read(listed.key.commit))
    except NotFoundError:
        return None


def _sweep(store: ObjectStore, prefix: str, *, older_than_seconds: float) -> None:
    """Remove unfinished writes; some servers cannot list theirs, and then keep them."""
    try:
        store.sweep(prefix, older_than_seconds=older_than_seconds)
    except StageError as error:
        _log.info("unfinished writes under %s could not be swept: %s", prefix, error)
