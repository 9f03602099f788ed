"""`python -m pretrain_jobs push DIR URI`: a directory's files as objects, those that differ.

For data that a job is to read; artifacts are committed by their stages.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.errors import UserError
from pretrain_jobs.storage.base import NotFoundError, ObjectStore
from pretrain_jobs.storage.local_files import translated
from pretrain_jobs.storage.uri import open_store


def main(arguments: Sequence[str]) -> None:
    """Copy, and print the key of each object that was written."""
    options = _parse(arguments)
    store = open_store(StorageSpec(uri=options.uri))
    for key in push(options.directory, store):
        print(key)  # noqa: T201 - the tool's result


def push(directory: Path, store: ObjectStore) -> list[str]:
    """Upload every file under a directory by its path there, unless it lies there already.

    Returns the keys that were written. Raises UserError when there is no such directory.
    """
    if not directory.is_dir():
        raise UserError(f"{directory} is no directory")
    files = {
        path.relative_to(directory).as_posix(): path
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }
    written = [key for key, path in files.items() if not _is_same(path, store, key)]
    for key in written:
        store.upload(files[key], key)
    return written


def _is_same(path: Path, store: ObjectStore, key: str) -> bool:
    with translated(path, "reading"), path.open("rb") as local:
        try:
            if store.head(key).size != path.stat().st_size:
                return False
        except NotFoundError:
            return False
        with store.open(key) as remote:
            return _sha256(local) == _sha256(remote)


def _sha256(stream: BinaryIO) -> bytes:
    digest = hashlib.sha256()
    while block := stream.read(2**20):
        digest.update(block)
    return digest.digest()


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m pretrain_jobs push",
        description="Upload the files of a directory that are not there already.",
        epilog="example: python -m pretrain_jobs push data s3://models/roberta-zh",
    )
    parser.add_argument("directory", metavar="DIR", type=Path, help="local directory")
    parser.add_argument("uri", metavar="URI", help="root of the keys, file:// or s3://")
    return parser.parse_args(arguments)
