"""A rank's files on the local disk: written whole or not at all, hashed as they are written.

Tensors go as torch's own archives (`*.pt`), everything else as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from pretrain_jobs.checkpoint.archive import Archive, write_archive
from pretrain_jobs.checkpoint.manifest import StoredFile
from pretrain_jobs.storage.local_files import atomic_file


class _HashingStream:
    """Passes bytes on and hashes them."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes | memoryview) -> int:
        self._stream.write(data)
        self._hash.update(data)
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        self._stream.flush()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def write_file(path: Path, content: Archive | bytes, memory: memoryview) -> StoredFile:
    """Write an archive whose storages lie in `memory`, or bytes, and flush it to the disk.

    Raises StorageFullError, or what else `atomic_file` makes of an error; then nothing is left.
    """
    with atomic_file(path) as raw:
        stream = _HashingStream(raw)
        if isinstance(content, Archive):
            write_archive(cast("BinaryIO", stream), content, memory)
        else:
            stream.write(content)
    return StoredFile(name=path.name, size=stream.size, sha256=stream.sha256)


def read_json(path: Path) -> dict[str, Any]:
    """Read a file of JSON whose hash was checked."""
    content: dict[str, Any] = json.loads(path.read_bytes())
    return content


def encode_json(content: Mapping[str, Any]) -> bytes:
    """JSON in one form only, so that equal content has equal bytes."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()
