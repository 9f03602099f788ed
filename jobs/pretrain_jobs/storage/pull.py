"""`python -m pretrain_jobs pull URI DIR`: a committed artifact as a local directory.

The command line uses it to hand a finished model over, so that it needs no storage client itself.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.storage.artifact import MANIFEST, Manifest, download_artifact, load
from pretrain_jobs.storage.base import ObjectStore
from pretrain_jobs.storage.local_files import translated
from pretrain_jobs.storage.uri import open_store


def main(arguments: Sequence[str]) -> None:
    """Replace DIR by the artifact, or leave it as it was when anything fails."""
    options = _parse(arguments)
    store = open_store(options.storage or StorageSpec(uri=options.uri), options.uri)
    manifest = load(store, kind=options.kind)
    if manifest is None:
        raise DataError(f"{store.uri} holds no committed {options.kind}: no {MANIFEST} is there")
    if options.only:
        pull_files(store, manifest, options.directory, names=options.only)
    else:
        pull(store, manifest, options.directory)


def pull_files(
    store: ObjectStore, manifest: Manifest, directory: Path, *, names: Sequence[str]
) -> None:
    """Copy some files of an artifact, hashes verified; DataError for one that it does not have."""
    files = tuple(entry for entry in manifest.files if entry.path in names)
    if missing := set(names) - {entry.path for entry in files}:
        raise DataError(f"{store.uri} has no {', '.join(sorted(missing))}")
    download_artifact(store, replace(manifest, files=files), directory)


def pull(store: ObjectStore, manifest: Manifest, directory: Path) -> bool:
    """Copy an artifact, hashes verified; False when the directory holds the same already.

    Raises DataError when a file does not verify, and UserError when the directory is something
    else than the copy of an artifact.
    """
    data = store.read(MANIFEST)
    if _holds(directory, data):
        return False
    _check_target(directory)
    fresh = directory.with_name(f".{directory.name}.new")
    with translated(directory, "writing"):
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        download_artifact(store, manifest, fresh)
        (fresh / MANIFEST).write_bytes(data)
        shutil.rmtree(directory, ignore_errors=True)
        fresh.replace(directory)
    return True


def _holds(directory: Path, manifest: bytes) -> bool:
    file = directory / MANIFEST
    return file.is_file() and file.read_bytes() == manifest


def _check_target(directory: Path) -> None:
    if directory.is_dir() and any(directory.iterdir()) and not (directory / MANIFEST).is_file():
        raise UserError(
            f"{directory} has files that are no artifact's; name an empty or a new directory"
        )


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain_jobs pull",
        description="Copy a committed artifact into a local directory and verify it.",
        epilog="example: python -m pretrain_jobs pull s3://models/zh/exports/0a1b2c3d4e5f6071 out",
    )
    parser.add_argument("uri", metavar="URI", help="root of the artifact, file:// or s3://")
    parser.add_argument("directory", metavar="DIR", type=Path, help="made, or replaced")
    parser.add_argument("--kind", default="export", help="kind of artifact (default: export)")
    parser.add_argument(
        "--only",
        metavar="FILE",
        action="append",
        help="copy this file alone; may be given more than once",
    )
    parser.add_argument(
        "--storage",
        type=StorageSpec.model_validate_json,
        metavar="JSON",
        help="the job's spec.storage, for its endpoint",
    )
    return parser.parse_args(arguments)
