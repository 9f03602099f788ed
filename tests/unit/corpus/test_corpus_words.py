"""Where whole words begin, in jieba's sense."""

from __future__ import annotations

import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_jobs.corpus import words as words_module
from pretrain_jobs.corpus.words import (
    JiebaSegmenter,
    Segmenter,
    UserWord,
    make_segmenter,
    parse_user_words,
    windows,
)
from pretrain_jobs.errors import UserError

DATA = Path(__file__).parents[2] / "data" / "corpus"
WORDS = DATA / "reviews.words.txt"
"""The words of reviews.txt by jieba itself, whose dictionary takes two seconds to load."""


@pytest.fixture(scope="module")
def segmenter() -> JiebaSegmenter:
    return JiebaSegmenter()


def cut(segmenter: Segmenter, text: str) -> list[str]:
    borders = [*np.flatnonzero(segmenter.starts(text)).tolist(), len(text)]
    return [text[a:b] for a, b in pairwise(borders)]


@pytest.mark.parametrize(
    "words",
    [
        ["乌鲁木齐", "是", "城市", "，", "中华人民共和国", "成立", "。"],
        ["研究", "生命", "的", "起源", "，", "研究生", "很", "忙", "。"],
        ["𠮷", "野家", "，", "㐀", "字", "，", "〇", "八年", "，", "𪚥", "。"],
        ["İİİ", "北京大学"],
        ["café", " ", "naïve", "，", "Привет", " ", "T恤"],
        ["１９９８", "年", "3.14%"],
        ["😀", "😀", "好"],
        ["ひ", "ら", "。"],
    ],
)
def test_words_of_every_script_are_whole(segmenter: JiebaSegmenter, words: list[str]) -> None:
    assert cut(segmenter, "".join(words)) == words


def test_an_empty_text_has_no_word(segmenter: JiebaSegmenter) -> None:
    assert cut(segmenter, "") == []


def write_words_of_jieba(text: str) -> None:
    with warnings.catch_warnings():  # its regular expressions are no raw strings
        warnings.simplefilter("ignore")
        import jieba
    WORDS.write_text("|".join(jieba.cut(text)), encoding="utf-8")


def test_han_words_are_those_of_jieba_itself(
    segmenter: JiebaSegmenter, *, update_golden: bool
) -> None:
    text = (DATA / "reviews.txt").read_text(encoding="utf-8")
    if update_golden:
        write_words_of_jieba(text)
    words = WORDS.read_text(encoding="utf-8").split("|")
    assert "".join(words) == text
    ours = np.flatnonzero(segmenter.starts(text))
    theirs = np.cumsum([0, *map(len, words)])[:-1]

    han = np.array(["\u4e00" <= character <= "\u9fff" for character in text])
    beside_han = han | np.roll(han, 1)

    assert ours[beside_han[ours]].tolist() == theirs[beside_han[theirs]].tolist()


@settings(max_examples=50, deadline=None)
@given(
    text=st.text(alphabet="中华人民共和国成立乌鲁木齐，。 \nab1-.", min_size=30, max_size=300),
    size=st.integers(75, 150),
)
def test_long_text_in_windows_has_the_words_of_the_whole(text: str, size: int) -> None:
    segmenter = JiebaSegmenter()
    whole = segmenter.starts(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words_module, "WINDOW_CHARACTERS", size)

        assert "".join(windows(text)) == text
        assert np.array_equal(segmenter.starts(text), whole)


def test_a_run_without_any_stop_is_cut_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words_module, "WINDOW_CHARACTERS", 10)

    assert [len(piece) for piece in windows("好" * 95)] == [40, 40, 15]


def test_user_words_are_grouped_whole_and_only_where_they_are_given() -> None:
    dictionary = "\ufeff云朵裤 10000\r\n云朵衫 10000 n\r\n\r\n".encode()

    own = JiebaSegmenter(parse_user_words(dictionary, "words.txt"))

    assert cut(own, "云朵裤和云朵衫。") == ["云朵裤", "和", "云朵衫", "。"]
    assert "云朵裤" not in cut(JiebaSegmenter(), "云朵裤和云朵衫。")


def test_user_words_are_read_as_jieba_reads_them() -> None:
    dictionary = "云朵裤 3 n\n台中\n江大桥 20000\nAT&T公司 nz\n".encode()

    assert parse_user_words(dictionary, "words.txt") == [
        UserWord("云朵裤", 3),
        UserWord("台中", None),
        UserWord("江大桥", 20000),
        UserWord("AT&T公司", None),
    ]


def test_a_user_word_with_digits_and_hyphens_is_grouped() -> None:
    own = JiebaSegmenter([UserWord("甲基-2-丙醇", 100_000)])

    assert cut(own, "用甲基-2-丙醇。") == ["用", "甲基-2-丙醇", "。"]


@pytest.mark.parametrize("word", ["南岭·北坡", "人工 智能"])
def test_a_user_word_that_jieba_cannot_find_is_refused_by_name(word: str) -> None:
    with pytest.raises(UserError, match=word):
        parse_user_words(f"好词 10\n{word} 100000\n".encode(), "words.txt")


def test_a_user_dictionary_of_another_encoding_is_refused() -> None:
    with pytest.raises(UserError, match=r"words\.txt is not UTF-8"):
        parse_user_words("云朵裤".encode("gb18030"), "words.txt")


def test_white_space_parts_words_when_it_is_asked_to() -> None:
    assert cut(make_segmenter("whitespace"), "Don't stop, 好人。 x") == [
        "Don't ",
        "stop, ",
        "好人。 ",
        "x",
    ]


def test_without_whole_words_every_character_is_one() -> None:
    assert make_segmenter("none").starts("ab c").all()
