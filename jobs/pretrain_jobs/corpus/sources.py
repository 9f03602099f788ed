"""Which files a source means: one file, everything under a prefix, or what a glob matches.

Only names are looked at here. What is skipped is told, never dropped in silence; the content of
files is the readers' subject.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote, unquote

from pretrain_api.base import Message
from pretrain_api.spec.corpus import SourceSpec
from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import NotFoundError, ObjectInfo, ObjectStore, open_store
from pretrain_jobs.storage.uri import absolute_uri, join_uri

Split = Literal["train", "validation"]
FileFormat = Literal["jsonl", "json", "text", "csv", "parquet"]
FileCompression = Literal["none", "gzip", "zstd", "xz"]

FORMAT_SUFFIXES: dict[str, FileFormat] = {
    ".jsonl": "jsonl",
    ".json": "json",
    ".txt": "text",
    ".csv": "csv",
    ".parquet": "parquet",
}
COMPRESSION_SUFFIXES: dict[str, FileCompression] = {".gz": "gzip", ".zst": "zstd", ".xz": "xz"}

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_MAGIC = re.compile(r"[*?\[]")
_KEPT = "/*?[]!"
"""Characters of a relative URI that are not percent-encoded: they have a meaning in globs."""


class SourceFile(Message):
    """A file to read, with its format and compression decided.

    `etag` is the store's content tag: it changes with the content and not with a file's times.
    """

    uri: str
    size: int
    etag: str
    format: FileFormat
    compression: FileCompression
    text_field: str = "text"
    document_separator: str = ""
    source: int = 0
    split: Split = "train"


@dataclass(frozen=True)
class SourceListing:
    """Files sorted by URI, each once, and one sentence for each that is skipped or empty."""

    files: tuple[SourceFile, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class _Match:
    """An object that a source's URI covers; `named` when the URI is that of the object itself."""

    store: ObjectStore
    info: ObjectInfo
    named: bool

    @property
    def uri(self) -> str:
        return join_uri(self.store.uri, self.info.key)


def list_source_files(
    sources: Sequence[SourceSpec], storage: StorageSpec, *, split: Split = "train"
) -> SourceListing:
    """Resolve sources to files, sorted by full URI.

    A file that several sources cover belongs to the first. Raises DataError for a source that
    covers no readable file, with its URI as written and as resolved.
    """
    files: dict[str, SourceFile] = {}
    warnings: list[str] = []
    for number, source in enumerate(sources):
        found, skipped = _files_of(source, storage, number=number, split=split)
        warnings += skipped
        for file in found:
            if file.uri in files:
                warnings.append(f"{file.uri} is covered by several sources and is read once")
            files.setdefault(file.uri, file)
    warnings += [f"{file.uri} is empty" for file in files.values() if file.size == 0]
    ordered = sorted(files.values(), key=lambda file: file.uri.encode())
    return SourceListing(files=tuple(ordered), warnings=tuple(warnings))


def split_uri(uri: str) -> tuple[str, str]:
    """A file's folder, as a URI for a store, and the file's key in that store."""
    return _split_at(uri, uri.rfind("/") + 1)


def exclude_validation(
    files: Sequence[SourceFile], validation: Sequence[SourceFile]
) -> SourceListing:
    """Training and validation files together; a file named for both is validation only."""
    held_out = {file.uri for file in validation}
    both = [file.uri for file in files if file.uri in held_out]
    kept = [file for file in files if file.uri not in held_out]
    return SourceListing(
        files=(*kept, *validation),
        warnings=tuple(f"{uri} is validation data and is not trained on" for uri in both),
    )


def _files_of(
    source: SourceSpec, storage: StorageSpec, *, number: int, split: Split
) -> tuple[list[SourceFile], list[str]]:
    files: list[SourceFile] = []
    skipped: list[str] = []
    for match in _matches(source.uri, storage):
        kind = _file_kind(source, match)
        if isinstance(kind, str):
            skipped.append(f"{match.uri} is skipped: {kind}")
        else:
            files.append(_source_file(source, match, kind, number=number, split=split))
    if not files:
        raise DataError(_nothing_found(source, storage, skipped))
    return files, skipped


def _source_file(
    source: SourceSpec,
    match: _Match,
    kind: tuple[FileFormat, FileCompression],
    *,
    number: int,
    split: Split,
) -> SourceFile:
    return SourceFile(
        uri=match.uri,
        size=match.info.size,
        etag=match.store.content_tag(match.info),
        format=kind[0],
        compression=kind[1],
        text_field=source.text_field,
        document_separator=source.document_separator,
        source=number,
        split=split,
    )


def _nothing_found(source: SourceSpec, storage: StorageSpec, skipped: Sequence[str]) -> str:
    resolved = _resolved(source.uri, storage)
    where = repr(source.uri) if resolved == source.uri else f"{source.uri!r} (that is {resolved})"
    if not skipped:
        return f"source {where} matches no file: check the URI, or end it with / for a prefix"
    shown = "; ".join(skipped[:5])
    more = f"; and {len(skipped) - 5} more" if len(skipped) > 5 else ""
    return f"source {where} has no file to read: {shown}{more}; set its format if it is known"


def _matches(uri: str, storage: StorageSpec) -> Iterator[_Match]:
    """The objects under a URI: itself, else what its glob matches, else all below it."""
    resolved = _resolved(uri, storage)
    if not resolved.endswith("/"):
        root, name = split_uri(resolved)
        exact = _head(open_store(storage, root), name)
        if exact:
            yield exact
            return
    magic = _MAGIC.search(resolved, len(_root_of(resolved)))
    if magic:
        yield from _glob(resolved, resolved.rfind("/", 0, magic.start()) + 1, storage)
        return
    store = open_store(storage, resolved)
    yield from (_Match(store, info, named=False) for info in _listing(store, ""))


def _glob(resolved: str, cut: int, storage: StorageSpec) -> Iterator[_Match]:
    root, pattern = _split_at(resolved, cut)
    store = open_store(storage, root)
    matches = re.compile(glob_pattern(pattern)).fullmatch
    literal = pattern[: _magic_start(pattern)]
    for info in _listing(store, literal):
        if matches(info.key):
            yield _Match(store, info, named=False)


def _magic_start(pattern: str) -> int:
    found = _MAGIC.search(pattern)
    return found.start() if found else len(pattern)


def glob_pattern(pattern: str) -> str:
    """The regular expression of a glob over keys: `*` and `?` stay within a name, `**` does not.

    A pattern that ends in `/` covers everything below.
    """
    if pattern.endswith("/"):
        pattern += "**"
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[[^\]/]+\])", pattern)
    return "".join(_glob_part(part) for part in parts)


def _glob_part(part: str) -> str:
    wild = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if part in wild:
        return wild[part]
    if part.startswith("[") and part.endswith("]"):
        return fnmatch.translate(part).removeprefix("(?s:").removesuffix(r")\Z")
    return re.escape(part)


def _listing(store: ObjectStore, prefix: str) -> Iterator[ObjectInfo]:
    try:
        yield from (info for info in store.list(prefix) if not info.key.endswith("/"))
    except NotFoundError:
        return


def _head(store: ObjectStore, name: str) -> _Match | None:
    try:
        return _Match(store, store.head(name), named=True) if name else None
    except NotFoundError:
        return None


def _resolved(uri: str, storage: StorageSpec) -> str:
    """The absolute URI; a `/` at the end stays, since it tells a prefix from a file."""
    if _SCHEME.match(uri):
        return uri
    root = absolute_uri(storage.uri, base=storage.uri)
    return f"{root}/{quote(uri, safe=_KEPT)}" if root.startswith("file:") else f"{root}/{uri}"


def _root_of(resolved: str) -> str:
    """The part of a URI that no glob can be in: its scheme and bucket."""
    return "/".join(resolved.split("/", 3)[:3]) + "/"


def _split_at(resolved: str, cut: int) -> tuple[str, str]:
    """Root and the key or pattern under it, as the store names it (see `parse_uri`)."""
    name = resolved[cut:]
    return resolved[:cut], unquote(name) if resolved.startswith("file:") else name


def _file_kind(source: SourceSpec, match: _Match) -> tuple[FileFormat, FileCompression] | str:
    """Format and compression of a file, or why it is not read."""
    parts = match.info.key.split("/")
    if not match.named and any(part.startswith((".", "_")) for part in parts):
        return "its name, or a folder's, begins with . or _"
    name, compression = _compression(source, parts[-1])
    by_suffix = next((f for s, f in FORMAT_SUFFIXES.items() if name.endswith(s)), None)
    if source.format == "auto":
        if by_suffix is None:
            return f"its suffix is none of {', '.join(FORMAT_SUFFIXES)}"
        chosen = by_suffix
    elif match.named or by_suffix in {None, source.format} or _is_lines(source, by_suffix):
        chosen = source.format
    else:
        return f"its suffix says {by_suffix} and the source's format is {source.format}"
    if chosen == "parquet" and compression != "none":
        return "a compressed Parquet file cannot be read from within"
    return chosen, compression


def _is_lines(source: SourceSpec, by_suffix: FileFormat | None) -> bool:
    """JSON lines often lie in files called .json; the reverse is never assumed."""
    return source.format == "jsonl" and by_suffix == "json"


def _compression(source: SourceSpec, name: str) -> tuple[str, FileCompression]:
    """The name without its compression suffix, and the compression."""
    found = next((s for s in COMPRESSION_SUFFIXES if name.endswith(s)), None)
    bare = name.removesuffix(found) if found else name
    if source.compression != "auto":
        return bare, source.compression
    return bare, COMPRESSION_SUFFIXES[found] if found else "none"
