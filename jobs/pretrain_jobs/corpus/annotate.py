"""From tokens with their characters to a shard's arrays: documents, sentences and words.

Pure array work over a whole batch. All positions are characters of the batch's documents joined
with one line feed, as in `tokens`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pretrain_jobs.corpus.tokens import Tokens
from pretrain_jobs.dataset.format.native import Shard, TokenDtype


@dataclass(frozen=True)
class TextBorders:
    """Borders in a batch's joined text.

    `documents` and `sentences` are ascending first characters, int32 [D] and [S]; the former are
    among the latter. `words` and `spaces` are bool by character.
    """

    documents: NDArray[np.int32]
    sentences: NDArray[np.int32]
    words: NDArray[np.bool_]
    spaces: NDArray[np.bool_]


def annotate(tokens: Tokens, borders: TextBorders, dtype: TokenDtype) -> Shard:
    """The batch as a shard; documents and sentences without tokens are left out.

    A token belongs to the document, sentence and word of its first character that is no white
    space, since some tokenizers count the space before a word to it.
    """
    starts = first_characters(tokens, borders.spaces)
    documents = np.searchsorted(starts, borders.documents)
    sentences = np.searchsorted(starts, borders.sentences)
    word_numbers = np.cumsum(borders.words, dtype=np.int32)[starts]
    word_starts = np.ones(len(starts), np.bool_)
    word_starts[1:] = word_numbers[1:] != word_numbers[:-1]
    total = len(tokens.ids)
    word_starts[documents[documents < total]] = True
    return Shard(
        tokens.ids.astype(dtype),
        _offsets(documents, total),
        _offsets(sentences, total),
        word_starts,
    )


def first_characters(tokens: Tokens, spaces: NDArray[np.bool_]) -> NDArray[np.int32]:
    """For each token its first character that is no white space, or its last; never descending."""
    if not spaces[tokens.starts].any():
        return np.maximum.accumulate(tokens.starts)
    nothing = len(spaces)
    next_text = np.arange(nothing, dtype=np.int32)
    next_text[spaces] = nothing
    next_text = np.minimum.accumulate(next_text[::-1])[::-1]
    last = np.maximum(tokens.ends - 1, tokens.starts)
    starts = np.minimum(tokens.starts, nothing - 1)
    return np.maximum.accumulate(np.minimum(np.maximum(next_text[starts], starts), last))


def _offsets(firsts: NDArray[np.int64], total: int) -> NDArray[np.int64]:
    """Ascending offsets with the total at the end, each once; [0] when there are no tokens."""
    return np.unique(np.concatenate((firsts, [0, total]))).astype(np.int64)
