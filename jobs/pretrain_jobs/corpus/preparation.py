"""Raw documents into arrays and statistics: cleaning, sentences, words, tokens.

Where documents come from and where shards go is not known here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from pretrain_api.spec.corpus import CleaningSpec

from pretrain_jobs.corpus.annotate import TextBorders, annotate
from pretrain_jobs.corpus.characters import SPACE, CharacterTable, character_class, code_points
from pretrain_jobs.corpus.cleaning import RemovalCause, normalize, removal_cause
from pretrain_jobs.corpus.readers.records import Document, Reject, RejectCause
from pretrain_jobs.corpus.sentences import sentence_starts
from pretrain_jobs.corpus.tokens import JOINT, Encoder, Tokens
from pretrain_jobs.corpus.words import Segmenter
from pretrain_jobs.dataset.format.native import Shard, TokenDtype
from pretrain_jobs.dataset.statistics import CorpusStatistics, Histogram
from pretrain_jobs.errors import DataError

_SPLITTER_ERRORS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a splitter may raise over a text: the document is refused, and the slice goes on."""


@dataclass(frozen=True)
class Vocabulary:
    """What preparation must know of a tokenizer beside how it encodes."""

    dtype: TokenDtype
    unknown: int | None
    special: frozenset[int]


@dataclass(frozen=True)
class CleanDocument:
    """Normalised text with the first character of each sentence."""

    text: str
    sentences: list[int]


@dataclass(frozen=True)
class Recipe:
    """How every document is treated, whatever its split."""

    cleaning: CleaningSpec
    encoder: Encoder
    segmenter: Segmenter
    vocabulary: Vocabulary
    split_sentences: Callable[[str], list[int]] = sentence_starts


class Preparation:
    """Cleans documents, encodes them in batches, and keeps the statistics."""

    def __init__(self, recipe: Recipe) -> None:
        self._recipe = recipe
        self._spaces = CharacterTable(character_class)
        self._removed: Counter[str] = Counter()
        self._statistics = CorpusStatistics()

    @property
    def statistics(self) -> CorpusStatistics:
        """Counts so far; rejects are the caller's."""
        removed = dict(sorted(self._removed.items()))
        read = self._statistics.documents + sum(removed.values())
        return self._statistics + CorpusStatistics(removed=removed, documents_read=read)

    def clean(self, document: Document) -> CleanDocument | Reject | None:
        """The document to encode, a reject, or None when a filter removed it."""
        text = normalize(document.text, self._recipe.cleaning.normalization)
        cause = removal_cause(text, self._recipe.cleaning)
        if cause:
            self._removed[cause] += 1
            return None
        try:
            return CleanDocument(text, self._recipe.split_sentences(text))
        except _SPLITTER_ERRORS as error:
            message = f"sentences cannot be found: {type(error).__name__}: {error}"
            return Reject(
                document.uri, document.line, document.offset, RejectCause.SPLITTER, message
            )

    def encode(self, documents: Sequence[CleanDocument]) -> Shard:
        """The documents as arrays; those without tokens are counted as empty."""
        tokens = self._recipe.encoder.encode([document.text for document in documents])
        tokens, literals = self._without_special(tokens)
        shard = annotate(tokens, self._borders(documents), self._recipe.vocabulary.dtype)
        self._removed[RemovalCause.EMPTY] += len(documents) - shard.documents
        self._count(documents, tokens, shard, literals)
        return shard

    def _borders(self, documents: Sequence[CleanDocument]) -> TextBorders:
        lengths = np.array([len(document.text) + len(JOINT) for document in documents], np.int32)
        firsts = np.cumsum(lengths, dtype=np.int32) - lengths
        counts = [len(document.sentences) for document in documents]
        within = np.fromiter(chain.from_iterable(d.sentences for d in documents), np.int32)
        text = JOINT.join(document.text for document in documents)
        words = self._recipe.segmenter.starts(text)
        words[firsts] = True
        return TextBorders(
            documents=firsts,
            sentences=np.repeat(firsts, counts) + within,
            words=words,
            spaces=self._spaces.of(code_points(text)) == SPACE,
        )

    def _without_special(self, tokens: Tokens) -> tuple[Tokens, int]:
        """Special tokens that a model found in plain text, such as a literal </s>, made unknown."""
        vocabulary = self._recipe.vocabulary
        special = np.array(sorted(vocabulary.special - {vocabulary.unknown}), np.uint32)
        found = np.isin(tokens.ids, special)
        count = int(np.count_nonzero(found))
        if not count:
            return tokens, 0
        if vocabulary.unknown is None:
            token = int(tokens.ids[found][0])
            raise DataError(
                f"the text spells special token {token} and the tokenizer has no unknown token "
                "to stand for it: use a tokenizer whose model cannot produce special tokens"
            )
        ids = np.where(found, np.uint32(vocabulary.unknown), tokens.ids)
        return Tokens(ids, tokens.starts, tokens.ends), count

    def _count(
        self, documents: Sequence[CleanDocument], tokens: Tokens, shard: Shard, literals: int
    ) -> None:
        unknown = tokens.ids == self._recipe.vocabulary.unknown
        self._statistics += CorpusStatistics(
            documents=shard.documents,
            characters=sum(len(document.text) for document in documents),
            tokens=len(tokens.ids),
            unknown_tokens=int(np.count_nonzero(unknown)),
            unknown_characters=int((tokens.ends - tokens.starts)[unknown].sum()),
            special_literals=literals,
            document_tokens=Histogram.of(np.diff(shard.document_offsets)),
            sentence_tokens=Histogram.of(np.diff(shard.sentence_offsets)),
            word_tokens=Histogram.of(_word_lengths(shard.word_starts)),
        )


def _word_lengths(word_starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    return np.diff(np.flatnonzero(word_starts), append=len(word_starts)).astype(np.int64)
