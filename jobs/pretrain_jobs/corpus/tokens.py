"""Tokens of many documents as flat arrays, with the characters that each came from.

A batch's documents are joined with a line feed; positions count characters of that joined text.
Special tokens are neither added nor read out of the text. How the arrays become shards is not
known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

_T = TypeVar("_T", bound=np.generic)

JOINT = "\n"
"""What documents are joined with: a character at which every tokenizer and segmenter stops."""

WINDOW_CHARACTERS = 1 << 18
OVERLAP_CHARACTERS = 1 << 12
AGREEMENT_TOKENS = 32
"""Two windows are joined in the middle of a run of this many tokens that both have."""


@dataclass(frozen=True)
class Tokens:
    """Token ids uint32 [T] and the first and the end character of each, int32 [T]."""

    ids: NDArray[np.uint32]
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    def between(self, first: int, last: int) -> Tokens:
        """Tokens [first, last)."""
        return Tokens(self.ids[first:last], self.starts[first:last], self.ends[first:last])

    def shifted(self, characters: int) -> Tokens:
        """The same tokens, so many characters later."""
        return Tokens(self.ids, self.starts + characters, self.ends + characters)


class Encoder(Protocol):
    """Turns documents into tokens."""

    def encode(self, texts: Sequence[str]) -> Tokens:
        """Tokens of all texts, positions in the texts joined with JOINT."""


def concatenate(parts: Iterable[Tokens]) -> Tokens:
    """All tokens, in order; parts that nobody else holds are given up on the way."""
    ids, starts, ends = [np.empty(0, np.uint32)], [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for part in parts:
        ids.append(part.ids)
        starts.append(part.starts)
        ends.append(part.ends)
    return Tokens(_joined(ids), _joined(starts), _joined(ends))


def _joined(arrays: list[NDArray[_T]]) -> NDArray[_T]:
    whole = np.concatenate(arrays)
    arrays.clear()
    return whole


class BatchEncoder:
    """Any tokenizer, through the library's own batches; long texts go through in windows."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def encode(self, texts: Sequence[str]) -> Tokens:
        """See Encoder."""
        return concatenate(self._shifted(texts))

    def _shifted(self, texts: Sequence[str]) -> Iterator[Tokens]:
        position = 0
        for text, tokens in zip(texts, self.encode_each(texts), strict=True):
            yield tokens.shifted(position)
            position += len(text) + len(JOINT)

    def encode_each(self, texts: Sequence[str]) -> Iterator[Tokens]:
        """The tokens of each text, positions in that text."""
        short = [text for text in texts if len(text) <= WINDOW_CHARACTERS]
        encoded = iter(self._tokenizer.encode_batch(short, add_special_tokens=False))
        for text in texts:
            whole = len(text) <= WINDOW_CHARACTERS
            yield _arrays(next(encoded)) if whole else self._encode_long(text)

    def _encode_long(self, text: str) -> Tokens:
        """The tokens of one encode of the whole text, with memory for a window only.

        Windows overlap; two that have the same tokens around the overlap's middle are joined
        there. Else the earlier window is made twice as long, at worst up to the text's end.
        """
        return concatenate(self._windows(text))

    def _windows(self, text: str) -> Iterator[Tokens]:
        start, kept_from, end = 0, 0, WINDOW_CHARACTERS
        window = self._encode_window(text, start, end)
        while end < len(text):
            following_end = min(2 * end - start, len(text))
            following_start = end - OVERLAP_CHARACTERS
            following = self._encode_window(text, following_start, following_end)
            joint = _joint(window, following, end - OVERLAP_CHARACTERS // 2)
            if joint is None:
                window = _from_character(self._encode_window(text, start, following_end), kept_from)
            else:
                yield window.between(0, joint[0])
                window = following.between(joint[1], len(following.ids))
                start, kept_from = following_start, int(window.starts[0])
            end = following_end
        yield window

    def _encode_window(self, text: str, start: int, end: int) -> Tokens:
        encoding = self._tokenizer.encode(text[start:end], add_special_tokens=False)
        return _arrays(encoding).shifted(start)


def _arrays(encoding: Encoding) -> Tokens:
    count = len(encoding)
    offsets = np.fromiter(chain.from_iterable(encoding.offsets), np.int32, 2 * count)
    return Tokens(np.array(encoding.ids, np.uint32), offsets[0::2], offsets[1::2])


def _from_character(tokens: Tokens, position: int) -> Tokens:
    return tokens.between(int(np.searchsorted(tokens.starts, position)), len(tokens.ids))


def _joint(left: Tokens, right: Tokens, position: int) -> tuple[int, int] | None:
    """The first token of each window at or after the character `position`, if both agree there."""
    i = int(np.searchsorted(left.starts, position))
    j = int(np.searchsorted(right.starts, position))
    half = AGREEMENT_TOKENS // 2
    around_left = left.between(max(i - half, 0), i + half)
    around_right = right.between(max(j - half, 0), j + half)
    agree = (
        len(around_left.ids) == len(around_right.ids) == AGREEMENT_TOKENS
        and np.array_equal(around_left.ids, around_right.ids)
        and np.array_equal(around_left.starts, around_right.starts)
        and np.array_equal(around_left.ends, around_right.ends)
    )
    return (i, j) if agree else None
