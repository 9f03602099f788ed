"""A JSON file that is one array of objects, streamed: no more than one object is held.

Positions in it are known by number only, since the parser keeps no offsets of elements.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import ijson

from pretrain_jobs.corpus.readers.input import FileInput
from pretrain_jobs.corpus.readers.records import (
    Document,
    Place,
    Reject,
    RejectCause,
    document_of_object,
)


def read_json_array(source: FileInput) -> Iterator[Document | Reject]:
    """A document for each element; where the JSON is broken one reject tells that the rest is lost.

    A file whose first character is no `[` is one reject.
    """
    stream = source.text_stream()
    place = Place(source.file.uri)
    first = _first_character(stream)
    if first != b"[":
        found = repr(first.decode(errors="replace")) if first else "nothing"
        message = f"the file must be an array of objects and begins with {found}; "
        yield place.reject(RejectCause.JSON, message + "set format: jsonl for JSON lines")
        return
    count = 0
    try:
        for count, value in enumerate(ijson.items(stream, "item", use_float=True), start=1):
            yield _numbered(document_of_object(value, source.file.text_field, place), count)
    except (ijson.JSONError, UnicodeDecodeError, RecursionError) as error:
        yield place.reject(
            _cause(error), f"broken after element {count}, the rest is lost: {error}"
        )


def _first_character(stream: io.BufferedReader) -> bytes:
    """The first byte that is no white space, left in the stream."""
    while (byte := stream.peek(1)[:1]).isspace():
        stream.read(1)
    return byte


def _numbered(result: Document | Reject, number: int) -> Document | Reject:
    if isinstance(result, Document):
        return result
    message = f"element {number}: {result.message}"
    return Reject(result.uri, None, None, result.cause, message)


def _cause(error: Exception) -> RejectCause:
    if isinstance(error, ijson.IncompleteJSONError) and "premature" in str(error):
        return RejectCause.TRUNCATED
    if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
        return RejectCause.ENCODING
    return RejectCause.JSON
