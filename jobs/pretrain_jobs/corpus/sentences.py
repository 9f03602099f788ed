"""Where sentences of Chinese and English text begin.

Rules, not a model: one regular expression finds candidates, small checks decide. A sentence keeps
its closing quotes and brackets and the white space after them, so the sentences of a text always
join to the text. Decimals, addresses, ellipses, abbreviations and initials are not cut.
"""

from __future__ import annotations

import re
from itertools import pairwise

_WIDE_STOPS = "。！？｡︒"
_NARROW_STOPS = "!?.．"
_ELLIPSES = "…‥"
_CLOSERS = "”’」』）)]}】〉》〕〗﹂﹄］｝＂»"
_EITHER_WAY = "\"'"
_LINE_BREAKS = "\n\x0b\x0c\x85\u2028\u2029"
_CONTINUES = frozenset("，、；：,;:")
"""A stop before one of these is inside its sentence."""

_CANDIDATE = re.compile(
    f"(?P<stop>[{_WIDE_STOPS}{_NARROW_STOPS}{_ELLIPSES}]+)"
    f"(?P<close>[{re.escape(_CLOSERS + _EITHER_WAY)}]*)(?P<space>\\s*)"
    f"|[{_LINE_BREAKS}]\\s*"
)
_BREAK = re.compile(f"[{_LINE_BREAKS}]")
_WIDE = re.compile(f"[{_WIDE_STOPS}]")
_ABBREVIATION = re.compile(
    r"(?:^|[^A-Za-z'’])"
    r"(?:Mr|Mrs|Ms|Dr|Prof|Rev|Gen|Col|Capt|Lt|Sgt|Gov|Sen|Rep|Hon|St|Sr|Jr|Mt|No|Nos|"
    r"[Ff]igs?|[Ee]qs?|[Ss]ec|[Vv]ol|[Cc]h|pp|vs|cf|al|approx|"
    r"Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec|"
    r"[A-Za-z]|[A-Za-z](?:\.[A-Za-z])+)$"
)
_ABBREVIATION_REACH = 12
"""Characters before a full stop that the abbreviation test looks at."""
_QUOTATION_REACH = 1000
"""Characters before a straight quote in which its partner is looked for."""


def sentence_starts(text: str) -> list[int]:
    """Offsets, in characters, at which sentences begin: 0 first, strictly ascending.

    Empty for empty text. Every sentence holds something other than white space, unless the text
    holds nothing else.
    """
    if not text:
        return []
    starts = [0]
    begun = len(text) - len(text.lstrip())
    for match in _CANDIDATE.finditer(text):
        end = _end_of_sentence(text, match, starts[-1])
        if end is not None and begun < end < len(text):
            starts.append(end)
    return starts


def split_sentences(text: str) -> list[str]:
    """The sentences themselves; joined they are the text."""
    starts = sentence_starts(text)
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def _end_of_sentence(text: str, match: re.Match[str], start: int) -> int | None:
    """Where the next sentence begins if one ends at this candidate."""
    end = match.end()
    after = text[end : end + 1]
    stop = match["stop"]
    if stop is None:
        return None if after.islower() else end
    close = match["close"]
    if close and (opening := _first_opening(text, match, start)) is not None:
        return opening if _ends_before_text(text, match, text[opening]) else None
    if after in _CONTINUES and after:
        return None
    if _BREAK.search(match["space"]):
        return None if after.islower() and not _WIDE.search(stop) else end
    return end if _ends_before_text(text, match, after) else None


def _first_opening(text: str, match: re.Match[str], start: int) -> int | None:
    """The first straight quote after the stop that opens a quotation, by parity."""
    for position in range(match.start("close"), match.end("close")):
        mark = text[position]
        sentence = text[max(start, position - _QUOTATION_REACH) : position]
        if mark in _EITHER_WAY and not _quotes_before(sentence, mark) % 2:
            return position
    return None


def _quotes_before(sentence: str, mark: str) -> int:
    """How many of the quotes are quotes; an apostrophe between letters is none."""
    if mark == '"':
        return sentence.count(mark)
    return len(re.findall(r"(?<![A-Za-z])'|'(?![A-Za-z])", sentence))


def _ends_before_text(text: str, match: re.Match[str], after: str) -> bool:
    """Whether a stop ends its sentence when `after` is the next sentence's first character."""
    stop, close, space = match["stop"], match["close"], match["space"]
    if _WIDE.search(stop):
        return True
    if not after:
        return False
    if all(mark in "….‥．" for mark in stop) and (len(stop) > 1 or stop in _ELLIPSES):
        return bool(space) and not after.islower() and not _is_han(after)
    if not space:
        return _ends_without_space(text, match, after)
    if after.islower():
        return False
    return "!" in stop or "?" in stop or bool(close) or not _abbreviates(text, match.start("stop"))


def _ends_without_space(text: str, match: re.Match[str], after: str) -> bool:
    """A narrow stop right before text ends a sentence between Han, never inside an address."""
    if after.isascii() and not match["close"]:
        return False
    before = text[match.start() - 1 : match.start()]
    if match["stop"][-1] in ".．":
        return _is_han(before) and _is_han(after)
    return not after.isascii()


def _abbreviates(text: str, stop: int) -> bool:
    """Whether the full stop at this offset belongs to an abbreviation or an initial."""
    return _ABBREVIATION.search(text[max(0, stop - _ABBREVIATION_REACH) : stop]) is not None


def _is_han(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or character >= "\U00020000"
