"""Reading an S3 object as a stream that survives dropped connections."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from botocore import exceptions as sdk

from pretrain_jobs.errors import StorageUnavailableError
from pretrain_jobs.storage.base import AlreadyExistsError

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef

Get = Callable[..., "GetObjectOutputTypeDef"]
"""`get_object` of one object: takes Range and IfMatch, raises stages' errors."""

BUFFER_BYTES = 1 << 20
_RESUMES = 5
"""Reconnections in a row without a byte in between, after which the server counts as gone."""

_log = logging.getLogger(__name__)


def open_stream(get: Get, *, name: str, start: int = 0, end: int | None = None) -> BinaryIO:
    """A buffered stream over bytes [start, end) of an object; the first request is made at once."""
    raw = _ResumingStream(get, name=name, start=start, end=end)
    return io.BufferedReader(raw, BUFFER_BYTES)


class _ResumingStream(io.RawIOBase):
    """Bytes of one version of an object; a broken connection is resumed where it broke."""

    def __init__(self, get: Get, *, name: str, start: int, end: int | None) -> None:
        self._get = get
        self._name = name
        self._position = start
        self._last = "" if end is None else str(end - 1)
        answer = get() if start == 0 and end is None else get(Range=self._range())
        self._body: StreamingBody = answer["Body"]
        self._etag = answer["ETag"]

    def readable(self) -> bool:
        """A forward stream: it reads and does nothing else."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the object; 0 at its end."""
        failures = 0
        while True:
            try:
                data = self._body.read(len(buffer))
            except sdk.BotoCoreError as error:
                failures += 1
                self._resume(error, failures)
                continue
            buffer[: len(data)] = data
            self._position += len(data)
            return len(data)

    def close(self) -> None:
        """Give the connection back."""
        if not self.closed:
            self._body.close()
        super().close()

    def _range(self) -> str:
        return f"bytes={self._position}-{self._last}"

    def _resume(self, error: sdk.BotoCoreError, failures: int) -> None:
        self._body.close()
        if failures > _RESUMES:
            raise StorageUnavailableError(
                f"{self._name}: reading broke off {failures} times at byte {self._position}"
            ) from error
        _log.warning("%s: resuming at byte %d: %s", self._name, self._position, error)
        try:
            answer = self._get(Range=self._range(), IfMatch=self._etag)
        except AlreadyExistsError as changed:
            raise StorageUnavailableError(
                f"{self._name} was replaced while it was being read"
            ) from changed
        self._body = answer["Body"]
