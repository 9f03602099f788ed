"""Deleting checkpoints: after a newer commit, and what dead attempts left.

Nothing here can fail an attempt: what cannot be deleted now is left to a later commit or attempt.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

from pretrain_api.spec.lifecycle import CheckpointSpec

from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.generations import Generation
from pretrain_jobs.checkpoint.layout import STEPS, CheckpointKey, Listed, group_keys
from pretrain_jobs.checkpoint.retention import abandoned, deletion_order, superseded
from pretrain_jobs.errors import StageError
from pretrain_jobs.storage import ObjectStore
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
            listed = Listed(key, tuple(info.key for info in store.list(key.prefix)))
            for name in deletion_order(listed):
                store.delete(name)
                failpoints.reach("during_retention")
    except StageError as error:
        _log.warning("old checkpoints could not be deleted: %s", error)


def sweep_abandoned(store: ObjectStore, generation: Generation, failpoints: Failpoints) -> None:
    """Delete what attempts before this one left without a commit, half-written files included."""
    try:
        listing = group_keys(info.key for info in store.list(STEPS))
    except StageError as error:
        _log.warning("leftovers of older attempts could not be looked for: %s", error)
        return
    for key in abandoned(listing, generation.number):
        _sweep(store, key.prefix, older_than_seconds=0.0)
        delete_checkpoints(store, [key], failpoints)
    _sweep(store, STEPS, older_than_seconds=SWEEP_AGE_SECONDS)


def _sweep(store: ObjectStore, prefix: str, *, older_than_seconds: float) -> None:
    """Remove unfinished writes; some servers cannot list theirs, and then keep them."""
    try:
        store.sweep(prefix, older_than_seconds=older_than_seconds)
    except StageError as error:
        _log.info("unfinished writes under %s could not be swept: %s", prefix, error)
