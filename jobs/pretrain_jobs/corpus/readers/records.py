"""What readers yield: a document, or a record that was refused and why."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class RejectCause(StrEnum):
    """Why a record was refused; the dataset's statistics count rejects by these."""

    JSON = "JSON"
    ENCODING = "UTF-8"
    NOT_OBJECT = "not an object"
    MISSING_FIELD = "missing field"
    TYPE = "type"
    CSV = "CSV"
    PARQUET = "Parquet"
    TRUNCATED = "truncated"
    DAMAGED = "damaged archive"
    SPLITTER = "splitter"


@dataclass(frozen=True, slots=True)
class Document:
    """A document's text and where it begins: line from 1, byte offset from 0, where known."""

    text: str
    uri: str
    line: int | None
    offset: int | None


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that was refused.

    `line` is None where a slice begins inside a file and in formats without lines; `offset`
    counts bytes of the decompressed file.
    """

    uri: str
    line: int | None
    offset: int | None
    cause: RejectCause
    message: str

    @property
    def place(self) -> str:
        """The file with line and byte offset, as far as they are known."""
        parts = [self.uri]
        parts += [f"line {self.line}"] if self.line is not None else []
        parts += [f"byte {self.offset}"] if self.offset is not None else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record begins."""

    uri: str
    line: int | None = None
    offset: int | None = None

    def reject(self, cause: RejectCause, message: str) -> Reject:
        """The record here, refused."""
        return Reject(self.uri, self.line, self.offset, cause, message)


def document_of_object(value: Any, field: str, place: Place) -> Document | Reject:
    """The document in a decoded JSON value."""
    if not isinstance(value, dict):
        message = f"a record must be an object and is {_kind(value)}"
        return place.reject(RejectCause.NOT_OBJECT, message)
    if field not in value:
        names = ", ".join(list(value)[:10])
        message = f"the record has no field {field!r} (it has: {names})"
        return place.reject(RejectCause.MISSING_FIELD, message)
    return document_of_text(value[field], field, place)


def document_of_text(text: Any, field: str, place: Place) -> Document | Reject:
    """The document with this text, which must be a string that UTF-8 can hold."""
    if not isinstance(text, str):
        return place.reject(RejectCause.TYPE, f"field {field!r} must be text and is {_kind(text)}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        message = f"field {field!r} has half a surrogate pair at character {error.start}"
        return place.reject(RejectCause.ENCODING, message)
    return Document(text, place.uri, place.line, place.offset)


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean"}
    return "null" if value is None else names.get(type(value), "a number")
