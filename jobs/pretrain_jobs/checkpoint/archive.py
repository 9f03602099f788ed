"""Torch's file format without torch: a ZIP archive of a pickle and of raw tensor storages.

`torch.load` reads what is written here. The records are those of `torch.save` (torch.serialization,
`_save`): `data.pkl`, `data/<number>` per storage, byte order and version, none compressed, each
storage's bytes at a multiple of 64.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import BinaryIO
from zipfile import ZipFile, ZipInfo

ALIGNMENT = 64
"""Bytes at whose multiples a storage begins, in a file and in memory."""

_DIRECTORY = "archive"
_LOCAL_HEADER, _ZIP64_EXTRA, _EXTRA_HEADER = 30, 20, 4
_PADDING_ID = b"FB"
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Extent:
    """Bytes of a storage in the memory that a snapshot was copied to."""

    offset: int
    length: int


@dataclass(frozen=True)
class Archive:
    """What a `*.pt` file holds: the pickle that names storages by number, and where they lie."""

    pickled: bytes
    storages: tuple[Extent, ...]


def write_archive(stream: BinaryIO, archive: Archive, memory: memoryview) -> None:
    """Write an archive whose storages lie in `memory`; the stream need not be seekable."""
    with ZipFile(stream, "w") as target:
        _write(target, "data.pkl", [memoryview(archive.pickled)])
        _write(target, ".format_version", [memoryview(b"1")])
        _write(target, ".storage_alignment", [memoryview(str(ALIGNMENT).encode())])
        _write(target, "byteorder", [memoryview(sys.byteorder.encode())])
        for number, extent in enumerate(archive.storages):
            _write(target, f"data/{number}", blocks(memory, extent))
        _write(target, "version", [memoryview(b"3\n")])


def blocks(memory: memoryview, extent: Extent) -> list[memoryview]:
    """An extent's bytes in pieces of at most 1 MiB, which stay in a processor's cache."""
    end = extent.offset + extent.length
    return [memory[start : min(start + _BLOCK, end)] for start in range(extent.offset, end, _BLOCK)]


def _write(target: ZipFile, name: str, pieces: Sequence[memoryview]) -> None:
    record = ZipInfo(f"{_DIRECTORY}/{name}")
    record.extra = _padding(target, record)
    with target.open(record, "w", force_zip64=True) as stream:
        for piece in pieces:
            stream.write(piece)


def _padding(target: ZipFile, record: ZipInfo) -> bytes:
    """An extra field (APPNOTE.TXT 4.5.1) so long that the record's bytes begin aligned."""
    header = _LOCAL_HEADER + len(record.filename) + _ZIP64_EXTRA + _EXTRA_HEADER
    length = -(target.start_dir + header) % ALIGNMENT
    return _PADDING_ID + length.to_bytes(2, "little") + bytes(length)
