"""Multipart uploads: part sizes, parts in parallel, and no leftovers after a failure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pretrain_jobs.errors import StageError, StorageUnavailableError, UserError
from pretrain_jobs.storage.base import NotFoundError, Progress
from pretrain_jobs.storage.local_files import translated
from pretrain_jobs.storage.s3_bucket import Bucket
from pretrain_jobs.storage.s3_errors import UploadGoneError

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

PARTS_LIMIT = 10_000
"""Most parts that S3 allows in one upload."""

PART_LIMIT_BYTES = 300_000_000
"""A part of this size takes five minutes at 1 MB/s, well within a signature's 15 minutes."""

MEMORY_LIMIT_BYTES = 64 << 20
"""Bound on the parts held in memory at a time (but at least one)."""

_MEBIBYTE = 1 << 20
_THREADS_LIMIT = 4
_ABORTS = 5
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Part:
    """Bytes [offset, offset + size) of a file; numbers start at 1."""

    number: int
    offset: int
    size: int


@dataclass(frozen=True)
class Target:
    """Where an upload goes; the key is the whole one, from the bucket's root."""

    bucket: Bucket
    key: str


def part_size(size: int, *, smallest: int) -> int:
    """Size of parts for a file of `size` bytes, in whole MiB where it must exceed `smallest`.

    UserError for a file that even the largest allowed parts cannot hold.
    """
    if size > PARTS_LIMIT * PART_LIMIT_BYTES:
        raise UserError(
            f"a file of {size} bytes is too large for one object: at most "
            f"{PARTS_LIMIT * PART_LIMIT_BYTES} bytes can be sent in {PARTS_LIMIT} parts"
        )
    needed = -(-size // PARTS_LIMIT)
    if needed <= smallest:
        return smallest
    return min(-(-needed // _MEBIBYTE) * _MEBIBYTE, PART_LIMIT_BYTES)


def split(size: int, *, part_bytes: int) -> list[Part]:
    """The parts of a file, all but the last of equal size."""
    return [
        Part(number=number, offset=offset, size=min(part_bytes, size - offset))
        for number, offset in enumerate(range(0, size, part_bytes), start=1)
    ]


def upload_multipart(
    target: Target, path: Path, *, size: int, smallest_part: int, progress: Progress | None
) -> None:
    """Send a file in parts, several at a time; what was sent is given up if any part fails."""
    part_bytes = part_size(size, smallest=smallest_part)
    threads = max(1, min(_THREADS_LIMIT, MEMORY_LIMIT_BYTES // part_bytes))
    with _upload(target) as upload_id:

        def send(part: Part) -> CompletedPartTypeDef:
            return _send_part(target, path, upload_id=upload_id, part=part, progress=progress)

        completed = _in_parallel(send, split(size, part_bytes=part_bytes), threads=threads)
        target.bucket.ask(
            "CompleteMultipartUpload",
            lambda s3: s3.complete_multipart_upload(
                Bucket=target.bucket.name,
                Key=target.key,
                UploadId=upload_id,
                MultipartUpload={"Parts": completed},
            ),
            key=target.key,
        )


@contextmanager
def _upload(target: Target) -> Iterator[str]:
    """The id of a new upload, which is aborted if the block raises."""
    answer = target.bucket.ask(
        "CreateMultipartUpload",
        lambda s3: s3.create_multipart_upload(Bucket=target.bucket.name, Key=target.key),
        key=target.key,
    )
    upload_id = answer["UploadId"]
    try:
        yield upload_id
    except BaseException:
        _abort_quietly(target, upload_id)
        raise


def _abort_quietly(target: Target, upload_id: str) -> None:
    """Abort without hiding the error that led here; what stays is swept later."""
    try:
        abort(target, upload_id)
    except StageError as error:
        _log.warning("an unfinished upload stays until it is swept: %s", error)


def abort(target: Target, upload_id: str) -> None:
    """Abort an upload until none of its parts is left; one that is gone already is a success.

    A part in flight during the first abort may be stored after it, hence the repetition.
    """
    for _ in range(_ABORTS):
        try:
            _abort_once(target, upload_id)
        except (UploadGoneError, NotFoundError):
            return
    raise StorageUnavailableError(
        f"bucket {target.bucket.name!r}: the upload of {target.key!r} keeps parts after an abort"
    )


def _abort_once(target: Target, upload_id: str) -> None:
    """Abort, then ask whether the upload is still known."""
    name, key = target.bucket.name, target.key
    target.bucket.ask(
        "AbortMultipartUpload",
        lambda s3: s3.abort_multipart_upload(Bucket=name, Key=key, UploadId=upload_id),
        key=key,
    )
    target.bucket.ask(
        "ListParts",
        lambda s3: s3.list_parts(Bucket=name, Key=key, UploadId=upload_id, MaxParts=1),
        key=key,
    )


def _send_part(
    target: Target, path: Path, *, upload_id: str, part: Part, progress: Progress | None
) -> CompletedPartTypeDef:
    with translated(path, "reading"), path.open("rb") as stream:
        stream.seek(part.offset)
        data = stream.read(part.size)
    if len(data) != part.size:
        raise StorageUnavailableError(f"{path} became shorter while it was uploaded")
    answer = target.bucket.ask(
        "UploadPart",
        lambda s3: s3.upload_part(
            Bucket=target.bucket.name,
            Key=target.key,
            UploadId=upload_id,
            PartNumber=part.number,
            Body=data,
        ),
        key=target.key,
    )
    if progress:
        progress(part.size)
    return {"PartNumber": part.number, "ETag": answer["ETag"]}


def _in_parallel(
    send: Callable[[Part], CompletedPartTypeDef], parts: list[Part], *, threads: int
) -> list[CompletedPartTypeDef]:
    """Send all parts; the first failure cancels those not yet begun and waits for the others."""
    with ThreadPoolExecutor(threads) as pool:
        futures = [pool.submit(send, part) for part in parts]
        try:
            return [future.result() for future in futures]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
