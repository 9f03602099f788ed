"""Committed artifacts: a directory of objects that exists once its manifest does.

The manifest, `manifest.json`, is written last and names every file with its size and SHA-256.
It holds no times, so equal content has an equal manifest. What a kind of artifact adds to its
manifest is that kind's own business.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pretrain_jobs.errors import DataError, StorageUnavailableError
from pretrain_jobs.format_version import check_format
from pretrain_jobs.storage.base import NotFoundError, ObjectStore, Progress
from pretrain_jobs.storage.local_files import TEMPORARY_PREFIX, translated
from pretrain_jobs.storage.streams import sha256_of

MANIFEST = "manifest.json"
FORMAT_VERSION = 1

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FileEntry:
    """A file of an artifact: its key under the artifact's root, bytes, and SHA-256 in hex."""

    path: str
    size: int
    sha256: str

    def __post_init__(self) -> None:
        if self.path == MANIFEST or not set(self.path.split("/")).isdisjoint({"", ".", ".."}):
            raise ValueError(f"{self.path!r} cannot be the path of an artifact's file")


class _ManifestFile(BaseModel):
    """`manifest.json` as it lies in the store."""

    model_config = ConfigDict(extra="allow", frozen=True)

    format_version: int = Field(alias="formatVersion")
    kind: str
    fingerprint: str
    files: tuple[FileEntry, ...]


@dataclass(frozen=True)
class Manifest:
    """A manifest that was read; `extra` is what its kind of artifact added."""

    kind: str
    fingerprint: str
    files: tuple[FileEntry, ...]
    extra: dict[str, Any]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(entry.size for entry in self.files)


def commit(
    store: ObjectStore,
    *,
    kind: str,
    fingerprint: str,
    files: Sequence[FileEntry],
    extra: dict[str, Any],
) -> dict[str, Any]:
    """Write the manifest, which makes the artifact exist, and return it as JSON data.

    Every file must lie in the store with its size already; else StorageUnavailableError, and no
    manifest is written. `extra` cannot replace the manifest's own fields.
    """
    if problems := _missing_or_cut(store, files):
        raise StorageUnavailableError(f"{store.uri} is not committed: {'; '.join(problems)}")
    ordered = sorted(files, key=lambda entry: entry.path.encode())
    manifest = {
        **extra,
        "formatVersion": FORMAT_VERSION,
        "kind": kind,
        "fingerprint": fingerprint,
        "files": [asdict(entry) for entry in ordered],
    }
    text = json.dumps(manifest, sort_keys=True, ensure_ascii=False, indent=1, allow_nan=False)
    store.write(MANIFEST, text.encode() + b"\n")
    return manifest


def load(store: ObjectStore, *, kind: str, fingerprint: str | None = None) -> Manifest | None:
    """The store's manifest, None if there is none.

    Raises DataError for a damaged one and for one of another kind, format or fingerprint.
    """
    try:
        data = store.read(MANIFEST)
    except NotFoundError:
        return None
    where = f"{store.uri}/{MANIFEST}"
    check_format(data, FORMAT_VERSION, what=where)
    try:
        parsed = _ManifestFile.model_validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(f"{where} is damaged at {place}: {first['msg']}") from error
    expected = {"kind": kind}
    if fingerprint is not None:
        expected["fingerprint"] = fingerprint
    for name, value in expected.items():
        found = parsed.model_dump(by_alias=True)[name]
        if found != value:
            raise DataError(f"{where} has {name} {found!r} where {value!r} was expected")
    return Manifest(
        kind=parsed.kind,
        fingerprint=parsed.fingerprint,
        files=parsed.files,
        extra=dict(parsed.model_extra or {}),
    )


def is_committed(store: ObjectStore, *, kind: str, fingerprint: str) -> bool:
    """Whether a usable manifest and every file, with its size, are there.

    A damaged manifest counts as none, with a warning in the log: the stage then runs again.
    """
    try:
        manifest = load(store, kind=kind, fingerprint=fingerprint)
    except DataError as error:
        _log.warning("taken for not committed: %s", error)
        return False
    return manifest is not None and not verify(store, manifest, hashes=False)


def verify(store: ObjectStore, manifest: Manifest, *, hashes: bool) -> list[str]:
    """What is wrong with an artifact's files: one sentence each, none when all is well.

    Sizes are compared by one listing; with `hashes` every file is read as well.
    """
    problems = _missing_or_cut(store, manifest.files)
    if not problems and hashes:
        problems = [
            f"{entry.path} has another SHA-256 than its manifest says"
            for entry in manifest.files
            if _sha256(store, entry.path) != entry.sha256
        ]
    return problems


def upload_directory(
    store: ObjectStore, directory: Path, *, progress: Progress | None = None
) -> list[FileEntry]:
    """Upload every file under a local directory, by its path there; a manifest is left out."""
    return [
        upload_file(store, path, key=path.relative_to(directory).as_posix(), progress=progress)
        for path in _files_under(directory)
    ]


def upload_file(
    store: ObjectStore, path: Path, *, key: str, progress: Progress | None = None
) -> FileEntry:
    """Hash and upload one local file."""
    with translated(path, "reading"), path.open("rb") as stream:
        sha256 = sha256_of(stream)
    info = store.upload(path, key, progress=progress)
    return FileEntry(path=key, size=info.size, sha256=sha256)


def download_artifact(
    store: ObjectStore, manifest: Manifest, directory: Path, *, progress: Progress | None = None
) -> None:
    """Download every file of an artifact under a directory; DataError if one's SHA-256 differs."""
    for entry in manifest.files:
        target = directory / entry.path
        if store.download(entry.path, target, progress=progress) != entry.sha256:
            target.unlink()
            raise DataError(
                f"{store.uri}/{entry.path} has another SHA-256 than its manifest says: "
                "delete the artifact's manifest.json, then its stage makes it anew"
            )


def _files_under(directory: Path) -> Iterator[Path]:
    for path in sorted(directory.rglob("*")):
        left_out = path.name.startswith(TEMPORARY_PREFIX) or path == directory / MANIFEST
        if path.is_file() and not left_out:
            yield path


def _missing_or_cut(store: ObjectStore, files: Sequence[FileEntry]) -> list[str]:
    sizes = {info.key: info.size for info in store.list()}
    return [
        f"{entry.path} should have {entry.size} bytes and {_state(sizes.get(entry.path))}"
        for entry in files
        if sizes.get(entry.path) != entry.size
    ]


def _state(size: int | None) -> str:
    return "is missing" if size is None else f"has {size}"


def _sha256(store: ObjectStore, key: str) -> str:
    with store.open(key) as stream:
        return sha256_of(stream)
