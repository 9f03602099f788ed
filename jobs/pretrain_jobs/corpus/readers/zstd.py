"""A zstd decompressor that notices when its input was cut off."""

from __future__ import annotations

import io

import zstandard

_INPUT_BYTES = 1 << 12
"""Compressed bytes fed at once: a block inflates to at most 128 KiB, so output stays bounded."""


class ZstdStream(io.RawIOBase):
    """The content of all frames of a stream, one after another.

    Raises EOFError when the last frame has no end, as gzip and xz streams do; the library's own
    reader ends in silence there.
    """

    def __init__(self, source: io.RawIOBase) -> None:
        self._source = io.BufferedReader(source, 1 << 20)
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._input = b""
        self._output = memoryview(b"")

    def readable(self) -> bool:
        """See io.IOBase."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """See io.RawIOBase."""
        while not self._output:
            if not self._advance():
                return 0
        count = min(len(buffer), len(self._output))
        buffer[:count] = self._output[:count]
        self._output = self._output[count:]
        return count

    def _advance(self) -> bool:
        """Decompress some more input; False at the end of the last frame."""
        data = self._input or self._source.read(_INPUT_BYTES)
        self._input = b""
        if not data:
            if self._frame is not None:
                raise EOFError("the last zstd frame has no end")
            return False
        if self._frame is None:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._output = memoryview(self._frame.decompress(data))
        if self._frame.eof:
            self._input = self._frame.unused_data
            self._frame = None
        return True
