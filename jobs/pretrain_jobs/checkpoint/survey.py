"""Which checkpoints lie under a URI, sorted by what their COMMITs say. No state is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

from pretrain_jobs.checkpoint.layout import STEPS, CheckpointKey, Listed, group_keys
from pretrain_jobs.checkpoint.manifest import Commit, decode_abandonment, decode_commit
from pretrain_jobs.errors import DataError, StorageUnavailableError
from pretrain_jobs.storage import NotFoundError, ObjectStore

_LOOKS = 16
"""Tries to see a store that does not change meanwhile."""


@dataclass(frozen=True)
class Survey:
    """What lies under the checkpoints' URI, seen from one run; all tuples the newest first.

    `candidates` are this run's readable commits; `damaged` are commits that cannot be read, with
    the reason; `foreign` are other runs'; `uncommitted` were never finished.
    """

    candidates: tuple[Commit, ...] = ()
    damaged: tuple[tuple[CheckpointKey, str], ...] = ()
    foreign: tuple[CheckpointKey, ...] = ()
    uncommitted: tuple[CheckpointKey, ...] = ()


def survey_store(store: ObjectStore, *, lineage: str) -> Survey:
    """List a store's checkpoints and read every COMMIT; raises the storage's errors.

    When a COMMIT went while it was looked at there is a newer one, so all is looked at again.
    """
    for _ in range(_LOOKS):
        listing = group_keys(info.key for info in store.list(STEPS))
        with suppress(NotFoundError):
            return survey_keys(listing, store.read, lineage=lineage)
    raise StorageUnavailableError(f"{store.uri} lists commits that it cannot read")


def survey_keys(listing: Iterable[Listed], read: Callable[[str], bytes], *, lineage: str) -> Survey:
    """Sort a listing by what each COMMIT says; `read` gives an object's bytes.

    What an attempt has given up is left out. Raises what `read` does.
    """
    candidates: list[Commit] = []
    damaged: list[tuple[CheckpointKey, str]] = []
    foreign: list[CheckpointKey] = []
    uncommitted: list[CheckpointKey] = []
    for listed in listing:
        if not listed.committed:
            uncommitted.append(listed.key)
            continue
        data = read(listed.key.commit)
        if decode_abandonment(data) is not None:
            continue
        try:
            commit = decode_commit(data, listed.key)
        except DataError as error:
            damaged.append((listed.key, str(error)))
            continue
        if commit.lineage == lineage:
            candidates.append(commit)
        else:
            foreign.append(listed.key)
    return Survey(tuple(candidates), tuple(damaged), tuple(foreign), tuple(uncommitted))
