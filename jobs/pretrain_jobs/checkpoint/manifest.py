"""What is written about a checkpoint: a manifest per rank, and COMMIT with all of them.

Their content is checked here, the files that they name elsewhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Self, TypeVar

from pretrain_api.base import Message
from pydantic import AwareDatetime, ValidationError, model_validator

from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.errors import DataError
from pretrain_jobs.format_version import check_format

FORMAT_VERSION = 1

M = TypeVar("M", bound="RankManifest")


class StoredFile(Message):
    """A file of a rank: its name in the rank's directory, bytes, and SHA-256 in hex."""

    name: str
    size: int
    sha256: str


class RankManifest(Message):
    """What one rank stored; written once all of its files are."""

    format_version: int = FORMAT_VERSION
    rank: int
    step: int
    generation: int
    attempt: str
    files: tuple[StoredFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    def file(self, name: str) -> StoredFile | None:
        """The file of that name, None if the rank has none."""
        return next((file for file in self.files if file.name == name), None)


class Origin(Message):
    """What COMMIT says of the run beside the manifests.

    `lineage` names the run that the state belongs to: data, model and hyperparameters, but not the
    number of ranks.
    """

    lineage: str
    world_size: int
    zero_stage: int
    versions: dict[str, str]


class FirstManifest(RankManifest):
    """Rank 0's manifest as it is stored: with it a later attempt can commit in its place."""

    origin: Origin


class Commit(Message):
    """The content of COMMIT. `root_hash` covers every file of every rank; see Origin."""

    format_version: int = FORMAT_VERSION
    step: int
    generation: int
    attempt: str
    lineage: str
    world_size: int
    zero_stage: int
    versions: dict[str, str]
    time: AwareDatetime
    ranks: tuple[RankManifest, ...]
    root_hash: str

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        if [manifest.rank for manifest in self.ranks] != list(range(self.world_size)):
            raise ValueError("the manifests of some ranks are missing")
        if any(not _belongs(manifest, self.key) for manifest in self.ranks):
            raise ValueError("the manifest of some rank is of another step or attempt")
        if self.root_hash != root_hash(self.ranks):
            raise ValueError("the root hash does not fit the files")
        return self

    @property
    def key(self) -> CheckpointKey:
        """Where the checkpoint lies."""
        return CheckpointKey(self.step, self.generation, self.attempt)


class Abandonment(Message):
    """What lies in the place of COMMIT where a later attempt has given a checkpoint up.

    As both are written only where nothing lies, the one that comes first decides, however late the
    attempt that was replaced comes to its own.
    """

    abandoned_by: int
    time: AwareDatetime


def commit_of(
    key: CheckpointKey, origin: Origin, ranks: Sequence[RankManifest], time: datetime
) -> Commit:
    """The commit of a checkpoint whose ranks have all stored their manifests; by rank."""
    return Commit(
        step=key.step,
        generation=key.generation,
        attempt=key.attempt,
        lineage=origin.lineage,
        world_size=origin.world_size,
        zero_stage=origin.zero_stage,
        versions=origin.versions,
        time=time,
        ranks=tuple(ranks),
        root_hash=root_hash(ranks),
    )


def root_hash(ranks: Sequence[RankManifest]) -> str:
    """SHA-256 in hex over the canonical JSON of all ranks' files."""
    files = [
        [manifest.rank, file.name, file.size, file.sha256]
        for manifest in ranks
        for file in manifest.files
    ]
    return hashlib.sha256(json.dumps(files, separators=(",", ":")).encode()).hexdigest()


def encode(model: Message) -> bytes:
    """A manifest or a commit as JSON."""
    return model.model_dump_json(by_alias=True, indent=1).encode()


def decode_commit(data: bytes, key: CheckpointKey) -> Commit:
    """Read COMMIT; DataError when it is damaged, of another format or of another checkpoint."""
    check_format(data, FORMAT_VERSION, what="COMMIT")
    try:
        commit = Commit.model_validate_json(data)
    except ValidationError as error:
        raise DataError(f"COMMIT is damaged: {_first(error)}") from error
    if commit.key != key:
        raise DataError(f"COMMIT is of {commit.key.prefix}")
    return commit


def decode_abandonment(data: bytes) -> Abandonment | None:
    """Read what lies in COMMIT's place; None for a commit, whole or damaged."""
    try:
        return Abandonment.model_validate_json(data)
    except ValidationError:
        return None


def decode_first_manifest(data: bytes, key: CheckpointKey) -> tuple[Origin, RankManifest]:
    """Read rank 0's manifest apart from what it says of the run; raises as for any rank."""
    first = _decode_manifest(FirstManifest, data, key, 0)
    return first.origin, RankManifest(**first.model_dump(exclude={"origin"}))


def decode_rank_manifest(data: bytes, key: CheckpointKey, rank: int) -> RankManifest:
    """Read a rank's manifest; DataError when it is damaged or of another rank or checkpoint."""
    return _decode_manifest(RankManifest, data, key, rank)


def _decode_manifest(kind: type[M], data: bytes, key: CheckpointKey, rank: int) -> M:
    check_format(data, FORMAT_VERSION, what=f"the manifest of rank {rank}")
    try:
        manifest = kind.model_validate_json(data)
    except ValidationError as error:
        raise DataError(f"the manifest of rank {rank} is damaged: {_first(error)}") from error
    if manifest.rank != rank or not _belongs(manifest, key):
        raise DataError(
            f"the manifest of rank {rank} in {key.prefix} is of rank {manifest.rank}, step "
            f"{manifest.step}, generation {manifest.generation}"
        )
    return manifest


def _belongs(manifest: RankManifest, key: CheckpointKey) -> bool:
    return CheckpointKey(manifest.step, manifest.generation, manifest.attempt) == key


def _first(error: ValidationError) -> str:
    first: Any = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
