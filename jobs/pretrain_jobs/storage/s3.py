"""`s3://`: objects in a bucket of AWS or of any server that speaks its protocol."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from uuid import uuid4

from pretrain_jobs.errors import StorageUnavailableError
from pretrain_jobs.storage.base import (
    PROBE_PREFIX,
    SWEEP_AGE_SECONDS,
    AlreadyExistsError,
    NotFoundError,
    ObjectInfo,
    Progress,
)
from pretrain_jobs.storage.local_files import atomic_file, translated
from pretrain_jobs.storage.s3_bucket import Bucket
from pretrain_jobs.storage.s3_client import S3Options
from pretrain_jobs.storage.s3_errors import ConflictError, NotOfferedError, was_retried
from pretrain_jobs.storage.s3_stream import open_stream
from pretrain_jobs.storage.s3_upload import Target, abort, upload_multipart
from pretrain_jobs.storage.streams import copy_hashed

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import GetObjectOutputTypeDef

_UNCONDITIONAL = (
    "{uri}: the server ignores If-None-Match, so two attempts that start in the same instant "
    "are told apart only by reading back"
)
_CONFLICTS = 5
"""Conditional writes in a row that may collide with another request before giving up."""


class S3Store:
    """An `ObjectStore` over the keys of a bucket that start with `prefix/`.

    Picklable and safe to use from several threads and after a fork.
    """

    def __init__(self, *, bucket: str, prefix: str, uri: str, options: S3Options) -> None:
        self.uri = uri
        self.options = options
        self._bucket = Bucket(bucket, options)
        self._root = f"{prefix}/" if prefix else ""
        self._bucket_is_known = False

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        """See ObjectStore; sorted here, because not every server's order is that of S3.

        Keys that end in `/`, which some tools write in place of directories, are left out.
        """
        start = self._root + prefix
        pages = self._bucket.ask(
            "ListObjectsV2",
            lambda s3: list(
                s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket.name, Prefix=start)
            ),
            key=start,
        )
        found = [
            ObjectInfo(
                key=item["Key"].removeprefix(self._root),
                size=item["Size"],
                etag=item["ETag"].strip('"'),
            )
            for page in pages
            for item in page.get("Contents", [])
            if not item["Key"].endswith("/")
        ]
        visible = (info for info in found if not info.key.startswith(PROBE_PREFIX))
        return iter(sorted(visible, key=lambda info: info.key.encode()))

    def head(self, key: str) -> ObjectInfo:
        """See ObjectStore."""
        try:
            answer = self._bucket.ask(
                "HeadObject",
                lambda s3: s3.head_object(Bucket=self._bucket.name, Key=self._root + key),
                key=self._root + key,
            )
        except NotFoundError:
            self._require_bucket()
            raise
        return ObjectInfo(key=key, size=answer["ContentLength"], etag=answer["ETag"].strip('"'))

    def exists(self, key: str) -> bool:
        """See ObjectStore."""
        try:
            self.head(key)
        except NotFoundError:
            return False
        return True

    def content_tag(self, info: ObjectInfo) -> str:
        """The ETag; the same content in parts of another size has another one."""
        return info.etag

    def open(self, key: str) -> BinaryIO:
        """See ObjectStore; a dropped connection is resumed, an object replaced meanwhile is not."""
        return open_stream(functools.partial(self._get, key), name=f"{self.uri}/{key}")

    def read(self, key: str) -> bytes:
        """See ObjectStore."""
        with self.open(key) as stream:
            return stream.read()

    def read_range(self, key: str, start: int, length: int) -> bytes:
        """See ObjectStore."""
        size = self.head(key).size
        if length <= 0 or start >= size:
            return b""
        end = min(start + length, size)
        get = functools.partial(self._get, key)
        with open_stream(get, name=f"{self.uri}/{key}", start=start, end=end) as stream:
            return stream.read()

    def write(self, key: str, data: bytes, *, if_absent: bool = False) -> ObjectInfo:
        """See ObjectStore; with `if_absent` the winner is told by reading back, where need be."""
        if if_absent:
            self._create(key, data)
        else:
            self._put(key, data)
        return self._checked(key, len(data))

    def upload(self, path: Path, key: str, *, progress: Progress | None = None) -> ObjectInfo:
        """See ObjectStore; large files go in parts, and nothing appears before the last one."""
        with translated(path, "reading"):
            size = path.stat().st_size
        if size <= self.options.part_bytes:
            with translated(path, "reading"):
                data = path.read_bytes()
            self._put(key, data)
            if progress:
                progress(len(data))
        else:
            upload_multipart(
                Target(self._bucket, self._root + key),
                path,
                size=size,
                smallest_part=self.options.part_bytes,
                progress=progress,
            )
        return self._checked(key, size)

    def download(self, key: str, path: Path, *, progress: Progress | None = None) -> str:
        """See ObjectStore."""
        with self.open(key) as source, atomic_file(path) as target:
            return copy_hashed(source, target, progress=progress)

    def delete(self, key: str) -> None:
        """See ObjectStore."""
        try:
            self._bucket.ask(
                "DeleteObject",
                lambda s3: s3.delete_object(Bucket=self._bucket.name, Key=self._root + key),
                key=self._root + key,
            )
        except NotFoundError:
            return

    def sweep(self, prefix: str = "", *, older_than_seconds: float = SWEEP_AGE_SECONDS) -> int:
        """See ObjectStore: aborts unfinished multipart uploads, by the server's clock."""
        abandoned = [
            (key, upload_id)
            for key, upload_id, age in self._unfinished(self._root + prefix)
            if age >= older_than_seconds
        ]
        for key, upload_id in abandoned:
            abort(Target(self._bucket, key), upload_id)
        return len(abandoned)

    def probe(self) -> tuple[str, ...]:
        """See ObjectStore; warns of a server that ignores If-None-Match."""
        key, data = f"{PROBE_PREFIX}{uuid4().hex}", uuid4().bytes * 64
        self._put(key, data)
        try:
            if self.read(key) != data:
                raise StorageUnavailableError(
                    f"{self.uri}: bytes came back changed: the server may keep checksums as part "
                    "of the content; use another one (spec.storage.endpointUrl)"
                )
            return () if self._is_conditional(key) else (_UNCONDITIONAL.format(uri=self.uri),)
        finally:
            self.delete(key)

    def _get(self, key: str, **options: str) -> GetObjectOutputTypeDef:
        """`get_object` with Range and IfMatch as given."""
        return self._bucket.ask(
            "GetObject",
            lambda s3: s3.get_object(
                Bucket=self._bucket.name, Key=self._root + key, **cast("Any", options)
            ),
            key=self._root + key,
        )

    def _put(self, key: str, data: bytes, *, if_absent: bool = False) -> None:
        condition: dict[str, Any] = {"IfNoneMatch": "*"} if if_absent else {}
        self._bucket.ask(
            "PutObject",
            lambda s3: s3.put_object(
                Bucket=self._bucket.name, Key=self._root + key, Body=data, **condition
            ),
            key=self._root + key,
        )

    def _create(self, key: str, data: bytes) -> None:
        """Write under a key that must be free; AlreadyExistsError if another writer's bytes win.

        Looking first protects an object of long ago, and reading back tells most races apart,
        on servers that ignore the condition.
        """
        if self.exists(key):
            raise AlreadyExistsError(f"{self.uri}/{key} exists already")
        try:
            self._put_if_absent(key, data)
        except AlreadyExistsError as error:
            if not was_retried(error):
                raise
        if self.read(key) != data:
            raise AlreadyExistsError(f"{self.uri}/{key} was written by someone else")

    def _put_if_absent(self, key: str, data: bytes) -> None:
        """The conditional request, repeated while it collides with others for the same key."""
        for _ in range(_CONFLICTS):
            with suppress(ConflictError):
                self._put(key, data, if_absent=True)
                return
        self._put(key, data, if_absent=True)

    def _is_conditional(self, key: str) -> bool:
        """Whether the server refuses to replace an object that exists, as it is asked to."""
        try:
            self._put(key, b"replaced", if_absent=True)
        except AlreadyExistsError:
            return True
        except NotOfferedError:
            return False
        return False

    def _checked(self, key: str, size: int) -> ObjectInfo:
        """What a HEAD says of an object just written, if it has the right size."""
        info = self.head(key)
        if info.size != size:
            raise StorageUnavailableError(
                f"{self.uri}/{key} has {info.size} bytes after {size} were sent: the server cut "
                "it, or keeps checksums as part of the content"
            )
        return info

    def _require_bucket(self) -> None:
        """Tell a missing object from a missing bucket, which a HEAD answers alike."""
        if self._bucket_is_known:
            return
        try:
            self._bucket.ask("HeadBucket", lambda s3: s3.head_bucket(Bucket=self._bucket.name))
        except NotFoundError as error:
            raise StorageUnavailableError(
                f"there is no bucket {self._bucket.name!r}: create it or correct the storage URI"
            ) from error
        self._bucket_is_known = True

    def _unfinished(self, prefix: str) -> Iterator[tuple[str, str, float]]:
        """Key, id and age in seconds of each multipart upload that was begun and not ended."""
        try:
            pages = self._bucket.ask(
                "ListMultipartUploads",
                lambda s3: list(
                    s3.get_paginator("list_multipart_uploads").paginate(
                        Bucket=self._bucket.name, Prefix=prefix
                    )
                ),
                key=prefix,
            )
        except NotOfferedError:
            return
        for page in pages:
            date = page["ResponseMetadata"]["HTTPHeaders"].get("date")
            now = parsedate_to_datetime(date) if date else datetime.now(UTC)
            for upload in page.get("Uploads", []):
                age = (now - upload["Initiated"]).total_seconds()
                yield upload["Key"], upload["UploadId"], age
