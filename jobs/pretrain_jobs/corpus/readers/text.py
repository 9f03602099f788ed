"""Plain text: documents parted by a blank line, or by a line of the user's choice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pretrain_jobs.corpus.readers.input import FileInput
from pretrain_jobs.corpus.readers.lines import Line, read_lines
from pretrain_jobs.corpus.readers.records import Document, Place, Reject, RejectCause


def read_text(source: FileInput) -> Iterator[Document | Reject]:
    """A document for each run of lines between separators; line ends become line feeds."""
    is_separator = separator_test(source.file.document_separator)
    lines: list[Line] = []
    for line in read_lines(source, is_separator):
        if not is_separator(line.data):
            lines.append(line)
            continue
        yield from _document(lines, source.file.uri)
        lines = []
    yield from _document(lines, source.file.uri)


def separator_test(separator: str) -> Callable[[bytes], bool]:
    """Whether a line (with its line end) parts documents."""
    if not separator:
        return lambda line: not line.strip()
    wanted = separator.encode()
    return lambda line: line.rstrip(b"\r\n") == wanted


def _document(lines: list[Line], uri: str) -> Iterator[Document | Reject]:
    if not any(line.data.strip() for line in lines):
        return
    place = Place(uri, lines[0].number, lines[0].offset)
    try:
        text = b"\n".join(line.data.rstrip(b"\r\n") for line in lines).decode()
    except UnicodeDecodeError as error:
        yield place.reject(RejectCause.ENCODING, f"the document is not UTF-8: {error.reason}")
        return
    yield Document(text, place.uri, place.line, place.offset)
