"""Copying and hashing byte streams, in bounded memory."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from pretrain_jobs.storage.base import Progress

CHUNK_BYTES = 1 << 20


def chunks(stream: BinaryIO) -> Iterator[bytes]:
    """What a stream still holds, a mebibyte at a time."""
    while chunk := stream.read(CHUNK_BYTES):
        yield chunk


def copy_hashed(source: BinaryIO, target: BinaryIO, *, progress: Progress | None = None) -> str:
    """Copy all that a stream still holds to another one; returns its SHA-256 in hex."""
    digest = hashlib.sha256()
    for chunk in chunks(source):
        target.write(chunk)
        digest.update(chunk)
        if progress:
            progress(len(chunk))
    return digest.hexdigest()


def hash_of(parts: Iterable[bytes], *, progress: Progress | None = None) -> tuple[int, str]:
    """Number of bytes, and their SHA-256 in hex; the parts are not kept."""
    digest, size = hashlib.sha256(), 0
    for part in parts:
        digest.update(part)
        size += len(part)
        if progress:
            progress(len(part))
    return size, digest.hexdigest()


def sha256_of(stream: BinaryIO) -> str:
    """SHA-256, in hex, of all that a stream still holds."""
    return hash_of(chunks(stream))[1]
