"""What normalisation and filters do to a document."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.spec.corpus import CleaningSpec
from pretrain_jobs.corpus.cleaning import (
    Normalization,
    RemovalCause,
    check_supported,
    normalize,
    removal_cause,
)
from pretrain_jobs.errors import UserError


def test_nul_and_marks_of_no_width_are_removed() -> None:
    assert normalize("好\0人", "none") == "好人"
    assert normalize("好\u200b人\u2060民\ufeff", "none") == "好人民"


def test_joiners_that_shape_emoji_and_scripts_stay() -> None:
    assert normalize("👩\u200d🔬 می\u200cخواهم", "none") == "👩\u200d🔬 می\u200cخواهم"


def test_line_ends_become_line_feeds() -> None:
    assert normalize("一\r\n二\r三\n", "none") == "一\n二\n三\n"


def test_line_separators_that_are_characters_stay() -> None:
    assert normalize("前\u2028后\u0085左\x0b右", "none") == "前\u2028后\u0085左\x0b右"


def test_nfkc_folds_width_and_composes() -> None:
    assert normalize("ＡＢＣ１２３①﹏", "NFKC") == "ABC1231_"
    assert normalize("e\u0301", "NFKC") == "\u00e9"
    assert normalize("ＡＢＣ", "NFC") == "ＡＢＣ"


@given(text=st.text(), form=st.sampled_from(["none", "NFC", "NFKC"]))
def test_normalising_twice_is_normalising_once(text: str, form: Normalization) -> None:
    once = normalize(text, form)

    assert normalize(once, form) == once


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("", RemovalCause.EMPTY),
        (" \n\u3000", RemovalCause.EMPTY),
        ("四个字吗", RemovalCause.TOO_SHORT),
        ("五个字可以", None),
        ("九个字的文字太长了吗", RemovalCause.TOO_LONG),
    ],
)
def test_lengths_decide_what_is_removed(text: str, cause: RemovalCause | None) -> None:
    cleaning = CleaningSpec(min_characters=5, max_characters=9)

    assert removal_cause(text, cleaning) == cause


def test_lengths_are_those_of_the_normalised_text() -> None:
    text = normalize("e\u0301e\u0301e\u0301", "NFC")

    assert removal_cause(text, CleaningSpec(min_characters=5)) == RemovalCause.TOO_SHORT


def test_filters_that_do_not_exist_yet_are_refused_by_name() -> None:
    cleaning = CleaningSpec(near_duplicates="remove", max_symbol_ratio=0.5)

    with pytest.raises(UserError, match=r"maxSymbolRatio, corpus\.cleaning\.nearDuplicates"):
        check_supported(cleaning)
    check_supported(CleaningSpec(normalization="NFKC", min_characters=1))
