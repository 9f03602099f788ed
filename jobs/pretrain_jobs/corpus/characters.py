"""Properties of characters as arrays: text as code points, and lazily filled tables over them."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

CODE_POINTS = 0x110000
"""Size of a table over all code points."""

_AT_ONCE = 1 << 18
"""Characters looked up at once, since an index array takes eight bytes for each."""

UNKNOWN = 0
"""A table's value for a code point not looked up yet; `classify` must not return it."""

NO_LETTER, LETTER, SPACE = 1, 2, 3
"""Classes of `character_class`."""

_IDEOGRAPHS_AND_SYLLABLES = (
    (0x0E00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x312F),
    (0x3190, 0xA4CF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
    (0x1B000, 0x1B2FF),
    (0x20000, 0x3FFFF),
)
"""Scripts written without spaces: Han and kana, Thai, Lao, Tibetan, Myanmar, Khmer."""


def code_points(text: str) -> NDArray[np.uint32]:
    """The code points of a text, uint32 [characters]."""
    return np.frombuffer(text.encode("utf-32-le"), dtype="<u4").astype(np.uint32, copy=False)


class CharacterTable:
    """A property of characters, uint8 by code point, asked of `classify` once for each."""

    def __init__(self, classify: Callable[[int], int]) -> None:
        self._classify = classify
        self._values = np.full(CODE_POINTS, UNKNOWN, np.uint8)

    def of(self, codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """The property of each code point, uint8 [characters]."""
        values = np.empty(len(codes), np.uint8)
        for start in range(0, len(codes), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            values[part] = self._look_up(codes[part])
        return values

    def _look_up(self, codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        values = self._values[codes]
        if not values.all():
            for code in np.unique(codes[values == UNKNOWN]).tolist():
                self._values[code] = self._classify(code)
            values = self._values[codes]
        return values


def character_class(code: int) -> int:
    """LETTER for letters, marks and decimal digits of scripts that put spaces between words."""
    character = chr(code)
    if character.isspace():
        return SPACE
    if any(first <= code <= last for first, last in _IDEOGRAPHS_AND_SYLLABLES):
        return NO_LETTER
    category = unicodedata.category(character)
    return LETTER if category[0] in "LM" or category == "Nd" else NO_LETTER
