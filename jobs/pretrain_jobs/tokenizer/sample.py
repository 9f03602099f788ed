"""A bounded sample of the corpus, spread over all of it, for training a tokenizer.

The sample follows from the sources and the cleaning alone: no clock, no random numbers, and the
same whatever runs beside it. Files that cannot be cut (compressed ones) give their beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pretrain_api.spec.corpus import CleaningSpec
from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.corpus.cleaning import normalize, removal_cause
from pretrain_jobs.corpus.documents import Reject, read_documents
from pretrain_jobs.corpus.slices import Slice, SlicePlan, plan_slices
from pretrain_jobs.corpus.sources import SourceFile
from pretrain_jobs.errors import DataError

PROBES = 256
"""Places of a large corpus that the sample is taken from, at most."""

PROBE_BYTES = 4096
"""Text of one place, at least: a small sample or corpus has fewer places, each a few requests."""


@dataclass(frozen=True)
class Sample:
    """Cleaned texts in the order of the corpus, and their bytes as UTF-8 together."""

    texts: tuple[str, ...]
    size: int


@dataclass
class _Reading:
    """What reading came by so far."""

    size: int = 0
    rejects: int = 0
    removed: int = 0
    first_reject: Reject | None = None


def sample_texts(
    files: Sequence[SourceFile],
    storage: StorageSpec,
    *,
    max_bytes: int,
    cleaning: CleaningSpec,
    progress: Callable[[int], None] | None = None,
) -> Sample:
    """Read up to `max_bytes` of text, each part of the corpus in proportion to its size.

    `progress` gets the bytes of text so far. DataError when there is no text at all.
    """
    stored = sum(file.size for file in files)
    probes = max(1, min(PROBES, min(max_bytes, stored) // PROBE_BYTES))
    plan = plan_slices(files, slice_bytes=max(1, -(-stored // probes)))
    total = sum(part.size for part in plan.slices)
    reading = _Reading()
    texts: list[str] = []
    passed = 0
    for part in plan.slices:
        passed += part.size
        allowed = -(-max_bytes * passed // total)
        for text in _texts_of(part, plan, storage, cleaning, reading):
            kept = _cut(text, allowed - reading.size)
            texts.append(kept)
            reading.size += len(kept.encode())
            if progress:
                progress(reading.size)
            if reading.size >= allowed or len(kept) < len(text):
                break
    if not texts:
        raise DataError(_nothing_read(files, reading))
    return Sample(texts=tuple(texts), size=reading.size)


def _texts_of(
    part: Slice,
    plan: SlicePlan,
    storage: StorageSpec,
    cleaning: CleaningSpec,
    reading: _Reading,
) -> Iterator[str]:
    for record in read_documents(part, plan, storage):
        if isinstance(record, Reject):
            reading.rejects += 1
            reading.first_reject = reading.first_reject or record
            continue
        text = normalize(record.text, cleaning.normalization)
        if removal_cause(text, cleaning):
            reading.removed += 1
        else:
            yield text


def _cut(text: str, room: int) -> str:
    """As much of the text's beginning as fits into `room` bytes of UTF-8, whole characters."""
    if len(text) * 4 <= room:
        return text
    return text.encode()[: max(room, 0)].decode(errors="ignore")


def _nothing_read(files: Sequence[SourceFile], reading: _Reading) -> str:
    found = (
        f"corpus.sources gave no document: {len(files)} files, {reading.rejects} records refused, "
        f"{reading.removed} documents empty or removed by corpus.cleaning"
    )
    first = reading.first_reject
    if first is None:
        return found
    line = "" if first.line is None else f" line {first.line}"
    return f"{found}; the first refused is {first.uri}{line}: {first.message}"
