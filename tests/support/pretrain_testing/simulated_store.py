"""A strongly consistent object store in memory, each request of which waits at a gate first."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from pretrain_jobs.storage import AlreadyExistsError, NotFoundError, ObjectInfo
from pretrain_jobs.storage.base import SWEEP_AGE_SECONDS, Progress
from pretrain_jobs.storage.local_files import translated


@dataclass
class SimulatedStore:
    """`gate` is called before every request; `objects` are what lies there."""

    gate: Callable[[], None]
    objects: dict[str, bytes] = field(default_factory=dict)
    uri: str = "s3://simulated/checkpoints"

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        self.gate()
        return iter([self._info(key) for key in sorted(self.objects) if key.startswith(prefix)])

    def head(self, key: str) -> ObjectInfo:
        self.gate()
        self._require(key)
        return self._info(key)

    def exists(self, key: str) -> bool:
        self.gate()
        return key in self.objects

    def content_tag(self, info: ObjectInfo) -> str:
        return info.etag

    def open(self, key: str) -> BinaryIO:
        return io.BytesIO(self.read(key))

    def read(self, key: str) -> bytes:
        self.gate()
        self._require(key)
        return self.objects[key]

    def read_range(self, key: str, start: int, length: int) -> bytes:
        return self.read(key)[start : start + length]

    def write(self, key: str, data: bytes, *, if_absent: bool = False) -> ObjectInfo:
        self.gate()
        if if_absent and key in self.objects:
            raise AlreadyExistsError(key)
        self.objects[key] = data
        return self._info(key)

    def upload(self, path: Path, key: str, *, progress: Progress | None = None) -> ObjectInfo:
        with translated(path, "reading"):
            data = path.read_bytes()
        if progress:
            progress(len(data))
        return self.write(key, data)

    def download(self, key: str, path: Path, *, progress: Progress | None = None) -> str:
        data = self.read(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if progress:
            progress(len(data))
        return hashlib.sha256(data).hexdigest()

    def delete(self, key: str) -> None:
        self.gate()
        self.objects.pop(key, None)

    def sweep(self, prefix: str = "", *, older_than_seconds: float = SWEEP_AGE_SECONDS) -> int:
        """Nothing: a write here is whole or not there."""
        del prefix, older_than_seconds
        return 0

    def probe(self) -> tuple[str, ...]:
        return ()

    def _require(self, key: str) -> None:
        if key not in self.objects:
            raise NotFoundError(f"{self.uri}/{key} is not there")

    def _info(self, key: str) -> ObjectInfo:
        data = self.objects[key]
        return ObjectInfo(key, len(data), hashlib.sha256(data).hexdigest())
