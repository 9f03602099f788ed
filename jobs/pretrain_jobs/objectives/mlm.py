"""Masked language modelling: which tokens are predicted, and what stands in their place.

The rule is BERT's (Devlin et al., arXiv:1810.04805): `probability` of a sample's tokens, its
special tokens counted, are predicted; most become the mask token, some a random one, the rest
stay. The number is exact, rounded half to even, at least 1 and capped. With whole words a word is
predicted whole or not at all: words are taken in random order, and one that exceeds what is still
to be predicted is passed over.

Every random number is keyed by the row's key and the column, so a sample is masked the same in
whatever batch it stands. Which rows there are, and their keys, is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pretrain_jobs.dataset.counter_random import Keys, draw
from pretrain_jobs.objectives.batch import IGNORED
from pretrain_jobs.objectives.pieces import Bool, Int64, expand

_CHUNK = 1 << 16
"""Positions masked at once, so that all temporary arrays stay in the processor's cache."""

_ALL_BITS, _NUMBER_BITS, _PLACE_BITS = np.uint64(64), np.uint64(28), np.uint64(20)
_PLACE_MASK = np.uint64((1 << 20) - 1)
"""What is sorted as one number: a row (16 bits), a word's random number, its place in a list."""


@dataclass(frozen=True)
class MaskingRule:
    """How much is predicted, and what becomes of it; ratios are shares of the predicted tokens."""

    probability: float = 0.15
    whole_word: bool = True
    mask_ratio: float = 0.8
    random_ratio: float = 0.1
    max_predictions: int | None = None


@dataclass(frozen=True)
class MaskVocabulary:
    """`mask` is the mask token's id; `replacements` int64 [R] are the ids random tokens come from.

    `protected` bool [length] marks ids that are never predicted.
    """

    mask: int
    replacements: Int64
    protected: Bool


@dataclass(frozen=True)
class Masked:
    """`input_ids` and `labels` int64 [B, L]; `unfilled` int64 [B], predictions without a word."""

    input_ids: Int64
    labels: Int64
    unfilled: Int64


def prediction_counts(real: Int64, available: Int64, rule: MaskingRule) -> Int64:
    """Predictions due in rows with `real` tokens, `available` of them open to it; all int64 [B]."""
    due: Int64 = np.maximum(np.rint(rule.probability * real).astype(np.int64), 1)
    if rule.max_predictions is not None:
        due = np.minimum(due, rule.max_predictions)
    return np.minimum(due, available)


def mask_tokens(
    input_ids: Int64,
    *,
    content: Bool,
    word_starts: Bool,
    real: Int64,
    keys: Keys,
    rule: MaskingRule,
    vocabulary: MaskVocabulary,
) -> Masked:
    """Mask rows `input_ids` int64 [B, L].

    `content` and `word_starts` bool [B, L] mark the corpus's tokens and those that begin a word;
    `real` int64 [B] counts each row's tokens, special ones included; `keys` uint64 [B].
    A row that begins or ends inside a word has the part it holds as a word of its own.
    """
    rows = max(1, _CHUNK // input_ids.shape[1])
    labels = np.full_like(input_ids, IGNORED)
    masked = input_ids.copy()
    unfilled = np.zeros(len(input_ids), np.int64)
    for first in range(0, len(input_ids), rows):
        part = slice(first, first + rows)
        maskable = content[part] & ~vocabulary.protected[input_ids[part]]
        numbers = draw(keys[part, None], np.arange(input_ids.shape[1])).ravel()
        due = prediction_counts(real[part], np.count_nonzero(maskable, axis=1), rule)
        words = _Words.find(maskable, word_starts[part] if rule.whole_word else maskable)
        chosen = _choose(words, numbers, due, rule.probability)
        unfilled[part] = due
        originals = input_ids[part].ravel()[chosen]
        labels[part].reshape(-1)[chosen] = originals
        masked[part].reshape(-1)[chosen] = _replace(originals, numbers[chosen], rule, vocabulary)
    return Masked(masked, labels, unfilled)


def _replace(
    originals: Int64, numbers: Keys, rule: MaskingRule, vocabulary: MaskVocabulary
) -> Int64:
    """What stands at predicted positions: the mask, a random token or the original, int64 [n].

    `numbers` are the ones by which words were chosen, so they are streams to draw from here.
    """
    numbers = draw(numbers, np.zeros(1, np.int64))
    action = (numbers >> np.uint64(40)).astype(np.float64) / 2.0**24
    scaled = (numbers & np.uint64(0xFFFFFFFF)) * np.uint64(len(vocabulary.replacements))
    random_tokens = vocabulary.replacements[(scaled >> np.uint64(32)).astype(np.int64)]
    result = np.where(action < rule.mask_ratio + rule.random_ratio, random_tokens, originals)
    result[action < rule.mask_ratio] = vocabulary.mask
    return result


@dataclass(frozen=True)
class _Words:
    """The words of a chunk of rows: flat start and size, int64 [W], and the rows' length."""

    start: Int64
    size: Int64
    length: int

    @classmethod
    def find(cls, maskable: Bool, begins: Bool) -> _Words:
        """Every run of maskable positions that is one word; both arguments bool [B, L]."""
        opens = maskable & begins
        opens[:, 0] = maskable[:, 0]
        opens[:, 1:] |= maskable[:, 1:] & ~maskable[:, :-1]
        closes = maskable.copy()
        closes[:, :-1] &= opens[:, 1:] | ~maskable[:, 1:]
        start = np.flatnonzero(opens)
        return cls(start, np.flatnonzero(closes) - start + 1, maskable.shape[1])

    def in_random_order(self, words: Int64, numbers: Keys) -> tuple[Int64, Int64]:
        """Words, row by row and each row's by its flat position's number, and their rows.

        `words` must rise; words with equal numbers (in 28 bits) keep their order.
        """
        start = self.start[words]
        packed = (start // self.length).astype(np.uint64) << _NUMBER_BITS
        packed |= numbers[start] >> (_ALL_BITS - _NUMBER_BITS)
        packed = np.sort((packed << _PLACE_BITS) | np.arange(len(words), dtype=np.uint64))
        place = (packed & _PLACE_MASK).astype(np.int64)
        return words[place], (packed >> (_NUMBER_BITS + _PLACE_BITS)).astype(np.int64)

    def take(self, words: Int64, numbers: Keys, left: Int64) -> Int64:
        """The words predicted when taken in random order; `left` int64 [B] falls by their sizes."""
        taken = [np.empty(0, np.int64)]
        words, row = self.in_random_order(words, numbers)
        while len(words):
            size = self.size[words]
            total = np.cumsum(size)
            first = np.minimum(np.searchsorted(row, np.arange(len(left))), len(row) - 1)
            room = left + (total - size)[first]
            fits = np.flatnonzero(total <= room[row])
            taken.append(words[fits])
            left -= np.bincount(row[fits], size[fits], len(left)).astype(np.int64)
            waiting = np.flatnonzero((total > room[row]) & (size <= left[row]))
            words, row = words[waiting], row[waiting]
        return np.concatenate(taken)


def _choose(words: _Words, numbers: Keys, left: Int64, probability: float) -> Int64:
    """Flat positions to predict; `left` int64 [B] falls to what no word had room for.

    Words with the smallest numbers come first, and those nearly always suffice. Ordering the
    others only in rows that have something left gives the same choice as ordering all.
    """
    limit = np.uint64(min(1.5 * probability + 0.02, 1.0) * (2.0**28 - 1)) << (
        _ALL_BITS - _NUMBER_BITS
    )
    early = (numbers < limit)[words.start]
    taken = words.take(np.flatnonzero(early), numbers, left)
    if left.any():
        row = words.start // words.length
        others = np.flatnonzero(~early & (words.size <= left[row]))
        taken = np.concatenate([taken, words.take(others, numbers, left)])
    return expand(words.start[taken], words.size[taken])
