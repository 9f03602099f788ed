"""Files that are there as a whole or not at all, whatever is killed meanwhile."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, data: bytes) -> None:
    """Replace a file's content; a reader, or a crash, sees the old bytes or the new ones.

    Raises OSError (no space, read-only) and leaves the old file as it was.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def write_if_different(path: Path, data: bytes) -> bool:
    """Write a file unless it has these bytes already; says whether it was written."""
    if path.is_file() and path.read_bytes() == data:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, data)
    return True
