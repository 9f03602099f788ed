"""Candidate pieces of a Unigram vocabulary: the substrings of words that occur again and again.

Pure array work on words as code points, with no hashing: a substring of k characters is numbered
by the pair of its first k-1 characters' number and its last character, so equal words give equal
numbers whatever their order in a table was.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CODE_POINT_BITS = 21
FEWEST = 2
"""Occurrences below which a substring is no candidate."""


@dataclass(frozen=True)
class Words:
    """Distinct words in one array.

    `characters` int64 [N] are code points, `starts` int64 [W+1] the first character of each word
    (and N at the end), `counts` int64 [W] how often each word occurs.
    """

    characters: NDArray[np.int64]
    starts: NDArray[np.int64]
    counts: NDArray[np.int64]

    @classmethod
    def from_counts(cls, words: list[tuple[str, int]]) -> Words:
        """From pairs of word and count; no word is empty."""
        joined = "".join(word for word, _ in words)
        lengths = np.array([len(word) for word, _ in words], dtype=np.int64)
        return cls(
            characters=np.frombuffer(joined.encode("utf-32-le"), dtype="<u4").astype(np.int64),
            starts=np.concatenate([[0], np.cumsum(lengths)]),
            counts=np.array([count for _, count in words], dtype=np.int64),
        )

    def word_of_character(self) -> NDArray[np.int64]:
        """The word [N] that each character belongs to."""
        return np.repeat(np.arange(len(self.counts)), np.diff(self.starts))

    def text(self, at: int, length: int) -> str:
        """The characters from `at` on."""
        return "".join(map(chr, self.characters[at : at + length]))


@dataclass(frozen=True)
class Seeds:
    """P candidates, single characters first.

    `at` int64 [P] is where one occurrence begins, `lengths` int64 [P] its characters, `counts`
    int64 [P] its occurrences; `pieces_at[k-1]` int32 [N] is the candidate of k characters that
    begins at each character, -1 for none.
    """

    at: NDArray[np.int64]
    lengths: NDArray[np.int64]
    counts: NDArray[np.int64]
    pieces_at: tuple[NDArray[np.int32], ...]


@dataclass(frozen=True)
class _Level:
    """Substrings of one length.

    Where each begins first, how often it occurs, and its number at each character (-1 for none).
    """

    at: NDArray[np.int64]
    counts: NDArray[np.int64]
    numbers: NDArray[np.int64]


def find_seeds(words: Words, *, longest: int, most: int) -> Seeds:
    """All characters, and up to `most` longer substrings with the largest count times length.

    A substring that only occurs within one longer candidate is left out.
    """
    levels = _levels(words, longest)
    redundant = [_redundant(level, longer) for level, longer in _pairs(levels)]
    lengths = np.concatenate([np.full(len(v.at), k + 1) for k, v in enumerate(levels)])
    counts = np.concatenate([level.counts for level in levels])
    hidden = np.concatenate(redundant)
    alphabet = len(levels[0].at)
    gain = np.where(hidden, 0, counts * lengths)
    gain[:alphabet] = 0
    ranked = np.argsort(-gain, kind="stable")[:most]
    chosen = np.concatenate([np.arange(alphabet), np.sort(ranked[gain[ranked] > 0])])
    number = np.full(len(counts), -1, dtype=np.int32)
    number[chosen] = np.arange(len(chosen), dtype=np.int32)
    at = np.concatenate([level.at for level in levels])
    return Seeds(
        at=at[chosen],
        lengths=lengths[chosen],
        counts=counts[chosen],
        pieces_at=tuple(_renumbered(levels, number)),
    )


def _levels(words: Words, longest: int) -> list[_Level]:
    """Substrings of 1, 2, ... characters, until none occurs often enough."""
    ends = np.repeat(words.starts[1:], np.diff(words.starts))
    room = ends - np.arange(len(ends))
    weights = words.counts[words.word_of_character()]
    levels = [_level(words.characters, np.arange(len(room)), weights, fewest=1)]
    while len(levels) < longest:
        last = levels[-1].numbers
        length = len(levels) + 1
        starts = np.flatnonzero((last >= 0) & (room >= length))
        keys = (last[starts] << CODE_POINT_BITS) | words.characters[starts + length - 1]
        level = _level(keys, starts, weights, fewest=FEWEST)
        if not len(level.at):
            break
        levels.append(level)
    return levels


def _level(
    keys: NDArray[np.int64], starts: NDArray[np.int64], weights: NDArray[np.int64], *, fewest: int
) -> _Level:
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    counts = np.bincount(inverse, weights=weights[starts], minlength=len(first)).astype(np.int64)
    kept = counts >= fewest
    renumbered = np.where(kept, np.cumsum(kept) - 1, -1)
    numbers = np.full(len(weights), -1, dtype=np.int64)
    numbers[starts] = renumbered[inverse]
    return _Level(at=starts[first[kept]], counts=counts[kept], numbers=numbers)


def _pairs(levels: list[_Level]) -> list[tuple[_Level, _Level | None]]:
    return list(zip(levels, [*levels[1:], None], strict=True))


def _redundant(level: _Level, longer: _Level | None) -> NDArray[np.bool_]:
    """Which substrings occur as often as a longer one that begins or ends with them."""
    hidden = np.zeros(len(level.at), dtype=np.bool_)
    if longer is not None:
        for offset in (0, 1):
            within = level.numbers[longer.at + offset]
            hidden[within[level.counts[within] == longer.counts]] = True
    return hidden


def _renumbered(levels: list[_Level], number: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """Each level's numbers as those of the chosen candidates."""
    renumbered: list[NDArray[np.int32]] = []
    offset = 0
    for level in levels:
        own = np.append(number[offset : offset + len(level.at)], np.int32(-1))
        renumbered.append(own[level.numbers])
        offset += len(level.at)
    return renumbered
