"""What a rank leaves of its saves on a volume that outlives its pod, under the store's own names.

    step-000001200/000007-<attempt>/rank-00000/...   the files of a rank
    step-000001200/000007-<attempt>/ranks/00000.json its manifest, written last: they are whole

The volume's folder is one job's own. An attempt saves a step once, so what lies under one name in
two places is the same. Nothing here is trusted before its SHA-256 was looked at.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pretrain_api.reports import LOCAL_CHECKPOINTS_ENV
from pretrain_api.stages import JobRef

from pretrain_jobs.checkpoint.layout import (
    STEPS,
    CheckpointKey,
    Listed,
    group_keys,
    rank_directory,
)
from pretrain_jobs.checkpoint.manifest import (
    RankManifest,
    decode_first_manifest,
    decode_rank_manifest,
)
from pretrain_jobs.errors import StageError
from pretrain_jobs.storage.base import ObjectStore
from pretrain_jobs.storage.file import FileStore
from pretrain_jobs.storage.local_files import translated


def local_root(environment: Mapping[str, str], job: JobRef) -> Path | None:
    """The job's folder on the volume of this pod; None without such a volume."""
    volume = environment.get(LOCAL_CHECKPOINTS_ENV)
    return Path(volume) / job.namespace / job.name / job.uid if volume else None


Part = tuple[CheckpointKey, int]
"""A rank's share of a save."""


@dataclass(frozen=True)
class LocalCopies:
    """The saves under one folder. Methods raise the errors that writing a local file does."""

    root: Path

    @property
    def store(self) -> ObjectStore:
        """The folder as a store with the names that the run's own has."""
        return FileStore(self.root, self.root.as_uri())

    def place(self, key: CheckpointKey, rank: int) -> Path:
        """The directory of a rank's files."""
        return self.root / key.prefix / rank_directory(rank)

    def holds(self, key: CheckpointKey, rank: int) -> bool:
        """Whether a rank's save was written to its end."""
        return self.store.exists(key.rank_manifest(rank))

    def vouch(self, key: CheckpointKey, rank: int, manifest: bytes) -> None:
        """Say that all files of a rank's save lie here."""
        self.store.write(key.rank_manifest(rank), manifest)

    def parts(self, *, before: int) -> list[Part]:
        """The shares that lie whole here, by their sizes, of generations before one."""
        sizes = {info.key: info.size for info in self.store.list(STEPS)}
        return [
            part
            for listed in group_keys(sizes)
            if listed.key.generation < before
            for rank in listed.ranks
            if (part := self._part(listed.key, rank, sizes))
        ]

    def manifest(self, key: CheckpointKey, rank: int) -> RankManifest:
        """What a rank's save consists of; DataError when that is damaged."""
        data = self.store.read(key.rank_manifest(rank))
        if rank:
            return decode_rank_manifest(data, key, rank)
        return decode_first_manifest(data, key)[1]

    def world_size(self, key: CheckpointKey) -> int:
        """How many ranks saved, as rank 0's share tells."""
        origin, _ = decode_first_manifest(self.store.read(key.rank_manifest(0)), key)
        return origin.world_size

    def make_room(self, key: CheckpointKey, rank: int) -> None:
        """Before a save, delete this rank's others but for the newest that is whole.

        Once that is this attempt's own, what older attempts left goes too, whichever rank's it is.
        A newer attempt's is never touched.
        """
        older = [one for one in self._listed() if one.key.generation <= key.generation]
        whole = [one.key for one in older if rank in one.ranks and one.key != key]
        kept = max(whole, key=lambda one: (one.generation, one.step), default=None)
        for listed in older:
            if kept is not None and listed.key.generation < kept.generation == key.generation:
                self._delete(listed.key)
            elif listed.key != kept:
                self.forget(listed.key, rank)

    def forget(self, key: CheckpointKey, rank: int) -> None:
        """Delete a rank's save, its manifest first."""
        self.store.delete(key.rank_manifest(rank))
        shutil.rmtree(self.place(key, rank), ignore_errors=True)
        self._remove_if_empty(key)

    def clean(self, *, before: int, kept: CheckpointKey | None) -> None:
        """Delete what generations before one have left, but for one save."""
        for listed in self._listed():
            if listed.key.generation < before and listed.key != kept:
                self._delete(listed.key)

    def remove(self) -> None:
        """Delete all: the job has no use for it any more."""
        shutil.rmtree(self.root, ignore_errors=True)
        _remove_empty((self.root.parent, self.root.parent.parent))

    def _listed(self) -> tuple[Listed, ...]:
        """All saves, half-written ones too."""
        with translated(self.root, "listing"):
            names = [path.relative_to(self.root) for path in self.root.glob(f"{STEPS}*/*/*/*")]
        return group_keys(path.as_posix() for path in names)

    def _part(self, key: CheckpointKey, rank: int, sizes: Mapping[str, int]) -> Part | None:
        try:
            manifest = self.manifest(key, rank)
        except StageError:
            return None
        whole = all(sizes.get(key.rank_file(rank, f.name)) == f.size for f in manifest.files)
        return (key, rank) if whole else None

    def _delete(self, key: CheckpointKey) -> None:
        """Delete a save of all ranks, the manifests first."""
        directory = self.root / key.prefix
        shutil.rmtree(directory / "ranks", ignore_errors=True)
        shutil.rmtree(directory, ignore_errors=True)
        _remove_empty((directory.parent,))

    def _remove_if_empty(self, key: CheckpointKey) -> None:
        directory = self.root / key.prefix
        _remove_empty((directory, directory.parent))


def _remove_empty(directories: Iterable[Path]) -> None:
    for directory in directories:
        with suppress(OSError):
            directory.rmdir()
