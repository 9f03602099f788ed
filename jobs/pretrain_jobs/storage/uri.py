"""URIs of storage: what they mean, how they join, and which store serves them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote, unquote, urlsplit

from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.errors import UserError
from pretrain_jobs.storage.base import ObjectStore

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}")


@dataclass(frozen=True)
class Location:
    """A parsed URI: an S3 bucket and the key prefix in it, or a local directory."""

    scheme: Literal["file", "s3"]
    bucket: str
    path: str


def open_store(storage: StorageSpec, uri: str | None = None) -> ObjectStore:
    """The store rooted at `uri` (by default the storage's own); nothing is read or made yet.

    A relative `uri` is taken under `storage.uri`. Raises UserError for a URI that is none.
    """
    root = absolute_uri(storage.uri if uri is None else uri, base=storage.uri)
    location = parse_uri(root)
    if location.scheme == "file":
        from pretrain_jobs.storage.file import FileStore

        return FileStore(root=Path(location.path), uri=root)
    from pretrain_jobs.storage.s3 import S3Store
    from pretrain_jobs.storage.s3_client import S3Options

    return S3Store(
        bucket=location.bucket,
        prefix=location.path,
        uri=root,
        options=S3Options.from_spec(storage),
    )


def absolute_uri(uri: str, *, base: str) -> str:
    """`uri` itself if it has a scheme, else `uri` under `base`; without `/` at the end."""
    if _SCHEME.match(uri):
        return uri.rstrip("/")
    if uri.startswith("/"):
        raise UserError(f"storage URI {uri!r} is a bare path: write file://{uri}")
    return join_uri(base.rstrip("/"), uri).rstrip("/")


def join_uri(root: str, key: str) -> str:
    """The URI of the object `key` in a store rooted at `root`."""
    if root.startswith("file:"):
        return f"{root}/{quote(key)}"
    return f"{root}/{key}"


def parse_uri(uri: str) -> Location:
    """Parse an absolute URI, or raise UserError that says what is wrong with it.

    `file:` URIs are percent-decoded, as `pathlib.Path.as_uri` writes them; keys in `s3:` URIs
    are taken as they stand, as the aws command line does.
    """
    scheme = uri.partition(":")[0].lower()
    if scheme == "file":
        return _parse_file(uri)
    if scheme == "s3":
        return _parse_s3(uri)
    raise UserError(f"storage URI {uri!r} has an unknown scheme: use s3:// or file:///")


def _parse_file(uri: str) -> Location:
    parts = urlsplit(uri, allow_fragments=False)
    if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
        raise UserError(f"storage URI {uri!r} must have an absolute path, such as file:///data")
    path = unquote(uri.partition(":")[2].removeprefix("//").removeprefix("localhost"))
    if ".." in path.split("/"):
        raise UserError(f"storage URI {uri!r} must not contain '..'")
    return Location(scheme="file", bucket="", path=path)


def _parse_s3(uri: str) -> Location:
    rest = uri.partition(":")[2]
    bucket, _, prefix = rest.removeprefix("//").partition("/")
    if not rest.startswith("//") or not _BUCKET.fullmatch(bucket):
        raise UserError(f"storage URI {uri!r} must name a bucket, such as s3://bucket/prefix")
    return Location(scheme="s3", bucket=bucket, path=prefix.strip("/"))
