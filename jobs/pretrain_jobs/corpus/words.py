"""Where whole words begin, for masking whole words.

jieba's dictionary and model define the words of Chinese text; rjieba is the same compiled, and
cuts Han text alike. What lies between Han is cut by a plain rule: letters and digits that touch
make one word, every other character stands alone unless the dictionary joins it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import rjieba
from numpy.typing import NDArray

from pretrain_jobs.corpus.characters import (
    LETTER,
    SPACE,
    CharacterTable,
    character_class,
    code_points,
)
from pretrain_jobs.errors import UserError

SegmenterName = Literal["jieba", "whitespace", "none"]

WINDOW_CHARACTERS = 1 << 18
"""Characters given to jieba at once; longer text is cut where jieba's blocks end."""

_BLOCK_END = re.compile(r"[^\u3400-\u9fff\U00020000-\U0003ffffa-zA-Z0-9+#&._%\-\s]\s*")
_USER_WORD = re.compile(r"(.+?)(?: ([0-9]+))?(?: ([a-z]+))?")
_MARK = "\0"
"""Parts the words in one joined string; normalised text never holds it."""


class Segmenter(Protocol):
    """Finds words in normalised text."""

    def starts(self, text: str) -> NDArray[np.bool_]:
        """For each character of the text whether a word begins there, bool [characters]."""


@dataclass(frozen=True)
class UserWord:
    """A word of a user dictionary, with its frequency if it has one."""

    text: str
    frequency: int | None


class JiebaSegmenter:
    """Words by jieba's dictionary and hidden Markov model, with a user's words added."""

    def __init__(self, user_words: Sequence[UserWord] = ()) -> None:
        self._classes = CharacterTable(character_class)
        self._cut: Callable[[str], list[str]] = rjieba.cut
        if user_words:
            own = rjieba.Jieba()
            for word in user_words:
                own.add_word(word.text, word.frequency, None)
            self._cut = own.cut

    def starts(self, text: str) -> NDArray[np.bool_]:
        """See Segmenter."""
        starts = np.zeros(len(text), np.bool_)
        position = 0
        for window in windows(text):
            starts[position : position + len(window)] = self._window_starts(window)
            position += len(window)
        letter = self._classes.of(code_points(text)) == LETTER
        starts[1:] &= ~(letter[1:] & letter[:-1])
        return starts

    def _window_starts(self, window: str) -> NDArray[np.bool_]:
        joined = code_points(_MARK.join(self._cut(window)))
        ends = np.flatnonzero(joined == 0)
        starts = np.zeros(len(window), np.bool_)
        starts[ends - np.arange(len(ends))] = True
        starts[:1] = True
        return starts


class WhitespaceSegmenter:
    """Words are what white space parts."""

    def __init__(self) -> None:
        self._classes = CharacterTable(character_class)

    def starts(self, text: str) -> NDArray[np.bool_]:
        """See Segmenter."""
        space: NDArray[np.bool_] = self._classes.of(code_points(text)) == SPACE
        starts = ~space
        starts[1:] &= space[:-1]
        return starts


class CharacterSegmenter:
    """Every character is a word, so that every token is one: whole words are switched off."""

    def starts(self, text: str) -> NDArray[np.bool_]:
        """See Segmenter."""
        return np.ones(len(text), np.bool_)


def make_segmenter(name: SegmenterName, user_words: Sequence[UserWord] = ()) -> Segmenter:
    """The segmenter of this name; only jieba has use for a user's words."""
    if name == "jieba":
        return JiebaSegmenter(user_words)
    return WhitespaceSegmenter() if name == "whitespace" else CharacterSegmenter()


def windows(text: str) -> list[str]:
    """The text in pieces of about WINDOW_CHARACTERS, cut where no word of jieba's can cross.

    In a run without any such place, four times as long, the cut is made all the same.
    """
    pieces: list[str] = []
    start = 0
    while start < len(text):
        limit = start + 4 * WINDOW_CHARACTERS
        match = _BLOCK_END.search(text, start + WINDOW_CHARACTERS, limit)
        end = match.end() if match else limit
        pieces.append(text[start:end])
        start = end
    return pieces


def parse_user_words(data: bytes, uri: str) -> list[UserWord]:
    """Read a user dictionary as jieba does: a word, then frequency and tag if wanted, a line.

    Raises UserError for a file that is not UTF-8 and for words that jieba could never find,
    because they hold a character at which it ends a block of text.
    """
    try:
        lines = data.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise UserError(f"user dictionary {uri} is not UTF-8: {error.reason}") from error
    words = [_user_word(line.strip()) for line in lines if line.strip()]
    lost = [word.text for word in words if not _can_be_found(word.text)]
    if lost:
        raise UserError(
            f"user dictionary {uri} has words that jieba cannot find in text: "
            f"{', '.join(lost[:10])}; use Han, Latin letters, digits and + # & . _ % - only"
        )
    return words


def _user_word(line: str) -> UserWord:
    match = _USER_WORD.fullmatch(line)
    if match is None:
        return UserWord(line, None)
    return UserWord(match[1], int(match[2]) if match[2] else None)


def _can_be_found(word: str) -> bool:
    """Whether jieba finds the word when it knows no other."""
    only = rjieba.Jieba.empty()  # type: ignore[no-untyped-call]
    only.add_word(word, 1_000_000, None)
    return list(only.cut(word, hmm=False)) == [word]
