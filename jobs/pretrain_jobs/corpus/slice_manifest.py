"""The manifest of one slice: what it left in the dataset, and whether that is still there.

A slice counts as done once its manifest, written last, is in the store and its files have the
sizes and hashes that it names. Running a slice again writes the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator

from pretrain_api.base import Message
from pydantic import ValidationError

from pretrain_jobs.dataset.manifest import ShardEntry, Split
from pretrain_jobs.dataset.statistics import CorpusStatistics
from pretrain_jobs.storage import NotFoundError, ObjectStore
from pretrain_jobs.storage.artifact import FileEntry

SLICE_FORMAT_VERSION = 1


class RejectsFile(Message):
    """The slice's rejects in the dataset, one JSON object a line."""

    path: str
    size: int
    sha256: str


class SliceManifest(Message):
    """What one slice left in the dataset."""

    format_version: int = SLICE_FORMAT_VERSION
    fingerprint: str
    index: int
    shards: dict[Split, tuple[ShardEntry, ...]]
    rejects: RejectsFile | None
    statistics: CorpusStatistics
    warnings: tuple[str, ...] = ()

    def files(self) -> Iterator[FileEntry]:
        """The slice's files."""
        for shards in self.shards.values():
            yield from (FileEntry(s.path, s.bytes, s.sha256) for s in shards)
        if self.rejects:
            yield FileEntry(self.rejects.path, self.rejects.size, self.rejects.sha256)


def slice_key(index: int) -> str:
    """The key of a slice's manifest."""
    return f"slices/{index:05d}.json"


def encode_slice(manifest: SliceManifest) -> bytes:
    """The bytes of a slice's manifest: equal slices give equal bytes."""
    data = manifest.model_dump(mode="json", by_alias=True)
    return json.dumps(data, sort_keys=True, ensure_ascii=False, indent=1).encode() + b"\n"


def load_slice(store: ObjectStore, index: int, fingerprint: str) -> SliceManifest | None:
    """A slice's manifest; None when there is none that can be used."""
    try:
        manifest = SliceManifest.model_validate_json(store.read(slice_key(index)))
    except (NotFoundError, ValidationError):
        return None
    usable = manifest.format_version == SLICE_FORMAT_VERSION and manifest.index == index
    return manifest if usable and manifest.fingerprint == fingerprint else None


def is_sound(store: ObjectStore, files: Iterable[FileEntry]) -> bool:
    """Whether every file is in the store with its size and SHA-256."""
    return all(_is_as_listed(store, file) for file in files)


def _is_as_listed(store: ObjectStore, file: FileEntry) -> bool:
    try:
        if store.head(file.path).size != file.size:
            return False
        digest = hashlib.sha256()
        with store.open(file.path) as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    except NotFoundError:
        return False
    return digest.hexdigest() == file.sha256
