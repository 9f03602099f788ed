"""A rank's files on the local disk: written whole or not at all, hashed as they are written.

Tensors go as torch's own archives (`*.pt`), everything else as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import torch

from pretrain_jobs.checkpoint.manifest import StoredFile
from pretrain_jobs.storage.local_files import atomic_file


class _HashingStream:
    """Passes bytes on and hashes them. Keeps the error that torch's writer would hide."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()
        self.size = 0
        self.error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            self._stream.write(data)
        except OSError as error:
            self.error = error
            raise
        self._hash.update(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        self._stream.flush()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def write_file(path: Path, content: Any) -> StoredFile:
    """Write a `*.pt` or `*.json` file and flush it to the disk.

    Raises StorageFullError, or what else `atomic_file` makes of an error; then nothing is left.
    """
    with atomic_file(path) as raw:
        stream = _HashingStream(raw)
        if path.suffix == ".json":
            stream.write(encode_json(content))
        else:
            _save_tensors(content, stream)
    return StoredFile(name=path.name, size=stream.size, sha256=stream.sha256)


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that `write_file` wrote as JSON and whose hash was checked."""
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def encode_json(content: Mapping[str, Any]) -> bytes:
    """JSON in one form only, so that equal content has equal bytes."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def _save_tensors(content: Any, stream: _HashingStream) -> None:
    try:
        torch.save(content, cast("IO[bytes]", stream))
    except RuntimeError as error:
        if stream.error is not None:
            raise stream.error from error
        raise
