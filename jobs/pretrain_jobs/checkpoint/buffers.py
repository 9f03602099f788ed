"""Host memory that a snapshot is copied to and that the writer's process reads.

It is an anonymous file, so it is shared through its descriptor and gone with its last user, and
it counts as memory of the container, not against the size of /dev/shm. It is allocated at the
first save and used again by every later one; it only grows.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
import tempfile
from pathlib import Path

from pretrain_jobs.storage.local_files import translate

_NAME = "pretrain-snapshot"


class HostBuffer:
    """The owner's side: room for a rank's own state, at most once."""

    def __init__(self) -> None:
        """Allocate nothing yet."""
        self.descriptor = _anonymous_file()
        self.size = 0
        self._mapping: mmap.mmap | None = None

    def reserve(self, size: int) -> None:
        """Have room for so many bytes; StorageFullError when there is none.

        What was stored before may be lost. The pages are there before anything is copied to them.
        """
        if size <= self.size:
            return
        self._mapping, self.size = None, 0
        try:
            _allocate(self.descriptor, size)
            self._mapping = mmap.mmap(self.descriptor, size)
        except OSError as error:
            raise translate(error, Path(_NAME), "making room for a snapshot in") from error
        self.size = size

    @property
    def memory(self) -> memoryview:
        """All bytes, writable; to be released before the buffer grows."""
        return memoryview(self._mapping) if self._mapping is not None else memoryview(b"")

    def address(self) -> int:
        """Where the bytes begin; valid until the buffer grows."""
        if self._mapping is None:
            return 0
        return ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))

    def close(self) -> None:
        """Give the memory back, once no other process maps it; once more does nothing."""
        self._mapping, self.size = None, 0
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1


class MappedBuffer:
    """The reader's side, in another process: mapped again only when the buffer grew."""

    def __init__(self, descriptor: int) -> None:
        """Read the memory behind an inherited descriptor."""
        self._descriptor = descriptor
        self._memory = memoryview(b"")

    def memory(self, size: int) -> memoryview:
        """The first `size` bytes at least, not to be written to."""
        if size > len(self._memory):
            self._memory = memoryview(mmap.mmap(self._descriptor, size, prot=mmap.PROT_READ))
        return self._memory


def _anonymous_file() -> int:
    if sys.platform == "linux":
        return os.memfd_create(_NAME)
    with tempfile.TemporaryFile() as stream:
        return os.dup(stream.fileno())


def _allocate(descriptor: int, size: int) -> None:
    if sys.platform == "linux":
        os.posix_fallocate(descriptor, 0, size)
    else:
        os.truncate(descriptor, size)
