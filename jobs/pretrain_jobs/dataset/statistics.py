"""Statistics of a corpus, counted by slice and added up in the dataset's manifest."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from pretrain_api.base import Message


class Histogram(Message):
    """Counts of lengths: bucket 0 counts zeros, bucket k lengths in [2^(k-1), 2^k)."""

    counts: tuple[int, ...] = ()

    @classmethod
    def of(cls, lengths: NDArray[np.int64]) -> Histogram:
        """Count lengths, int64 [N]."""
        buckets = np.frexp(lengths.astype(np.float64))[1]
        return cls(counts=tuple(np.bincount(buckets).tolist()) if len(lengths) else ())

    def __add__(self, other: Histogram) -> Histogram:
        longer, shorter = sorted((self.counts, other.counts), key=len, reverse=True)
        padded = (*shorter, *([0] * (len(longer) - len(shorter))))
        return Histogram(counts=tuple(a + b for a, b in zip(longer, padded, strict=True)))


class CorpusStatistics(Message):
    """Counts over the documents read.

    `documents_read` is documents kept, removed and refused together; `characters` and
    `characters_per_token` are of kept documents after normalisation.
    """

    documents_read: int = 0
    documents: int = 0
    removed: dict[str, int] = {}
    rejects: dict[str, int] = {}
    characters: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    unknown_characters: int = 0
    special_literals: int = 0
    document_tokens: Histogram = Histogram()
    sentence_tokens: Histogram = Histogram()
    word_tokens: Histogram = Histogram()
    characters_per_token: float = 0.0
    unknown_rate: float = 0.0

    def __add__(self, other: CorpusStatistics) -> CorpusStatistics:
        tokens = self.tokens + other.tokens
        characters = self.characters + other.characters
        unknown = self.unknown_tokens + other.unknown_tokens
        return CorpusStatistics(
            documents_read=self.documents_read + other.documents_read,
            documents=self.documents + other.documents,
            removed=add_counts(self.removed, other.removed),
            rejects=add_counts(self.rejects, other.rejects),
            characters=characters,
            tokens=tokens,
            unknown_tokens=unknown,
            unknown_characters=self.unknown_characters + other.unknown_characters,
            special_literals=self.special_literals + other.special_literals,
            document_tokens=self.document_tokens + other.document_tokens,
            sentence_tokens=self.sentence_tokens + other.sentence_tokens,
            word_tokens=self.word_tokens + other.word_tokens,
            characters_per_token=_rate(characters, tokens),
            unknown_rate=_rate(unknown, tokens),
        )


def add_counts(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    """Two tallies added, in the order of their names."""
    return {name: a.get(name, 0) + b.get(name, 0) for name in sorted({*a, *b})}


def total(statistics: Iterable[CorpusStatistics]) -> CorpusStatistics:
    """All statistics added up."""
    return sum(statistics, CorpusStatistics())


def _rate(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0
