"""What a document goes through before sentences, words and tokens: normalisation and filters.

Filters measure normalised text. Each removal has a cause, which the statistics count.
"""

from __future__ import annotations

import re
import unicodedata
from enum import StrEnum
from typing import Literal

from pretrain_api.spec.corpus import CleaningSpec

from pretrain_jobs.errors import UserError

Normalization = Literal["none", "NFC", "NFKC"]

_UNWANTED = re.compile("[\\0\\u200b\\u2060\\ufeff]+")
"""NUL and marks of zero width: no text, and they would part words. Joiners stay."""


class RemovalCause(StrEnum):
    """Why a document that could be read is not in the dataset."""

    EMPTY = "empty"
    TOO_SHORT = "too short"
    TOO_LONG = "too long"


def normalize(text: str, form: Normalization) -> str:
    """Line ends become line feeds, NUL and zero-width marks go, then the Unicode form.

    Applying it twice gives the same as once.
    """
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if _UNWANTED.search(text):
        text = _UNWANTED.sub("", text)
    if form == "none" or unicodedata.is_normalized(form, text):
        return text
    return unicodedata.normalize(form, text)


def removal_cause(text: str, cleaning: CleaningSpec) -> RemovalCause | None:
    """Why normalised text is removed; None when it is kept."""
    if not text or text.isspace():
        return RemovalCause.EMPTY
    if len(text) < cleaning.min_characters:
        return RemovalCause.TOO_SHORT
    if cleaning.max_characters is not None and len(text) > cleaning.max_characters:
        return RemovalCause.TOO_LONG
    return None


def check_supported(cleaning: CleaningSpec) -> None:
    """Raise UserError for a filter that is in the API and not in this release."""
    asked = {
        "languages": bool(cleaning.languages),
        "maxSymbolRatio": cleaning.max_symbol_ratio is not None,
        "maxRepetitionRatio": cleaning.max_repetition_ratio is not None,
        "exactDuplicates": cleaning.exact_duplicates == "remove",
        "nearDuplicates": cleaning.near_duplicates == "remove",
    }
    missing = [f"corpus.cleaning.{name}" for name, wanted in asked.items() if wanted]
    if missing:
        raise UserError(f"{', '.join(missing)} cannot be used yet: leave it out of the job")
