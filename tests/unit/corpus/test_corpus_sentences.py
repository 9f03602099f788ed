"""Where sentences of Chinese and English text begin."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_jobs.corpus.sentences import sentence_starts, split_sentences

ALPHABET = "。！？…，.?!\"'”’」』）)]}019azAZ人好中 \n:/@“「（"


@settings(max_examples=250, deadline=None)
@given(text=st.text(ALPHABET, min_size=1, max_size=60) | st.text(ALPHABET, min_size=40))
def test_no_character_is_lost_and_no_sentence_is_empty(text: str) -> None:
    sentences = split_sentences(text)

    assert "".join(sentences) == text
    assert all(sentences)
    assert len(sentences) == 1 or all(sentence.strip() for sentence in sentences)


@given(text=st.text(max_size=200))
def test_any_text_is_the_sum_of_its_sentences(text: str) -> None:
    assert "".join(split_sentences(text)) == text


CASES = {
    "addresses are whole": [
        "见https://a.example/b.html?x=1!2&y=3.4#top，再看a@b.example。",
        "好的。",
    ],
    "stops stay with their closing quote": ["“真的！！！”", "他走了。"],
    "closing marks end the sentence of their stop": [
        "「走吧。」",
        "她说。",
        "（没有人笑。）",
        "『真的吗？』",
        "【完。】",
    ],
    "a mark that goes on keeps the sentence": ["“好！”，他说。", "（没有。），完"],
    "one stop": ["好。"],
    "short sentences": ["嗯！", "好？"],
    "no stop after a letter": ["a."],
    "ellipses are inside": ["我……不知道。", "他说...好吧. ", "Wait... what? ", "Yes."],
    "an ellipsis before a new sentence ends one": ["Wait... ", "What?"],
    "abbreviations and initials": [
        "Dr. A met U.S. staff at 4 a.m. on a Sunday, e.g. me. ",
        "She left.",
    ],
    "titles and numbers": ["See Fig. 3 by J. R. Smith, vol. 2. ", "Next."],
    "decimals and versions": ["圆周率是3.14，版本1.5.2发布。", "It is 2.5 now. ", "Good."],
    "brackets at a line's start": ["前句。\n", "]]这句以括号开头。\n", "后句。"],
    "straight quotes by parity": ["他说。", '"你好。"', "然后走了。"],
    "English quotations": ['He said "Go." ', "She left. ", '"Really?" he asked.'],
    "apostrophes are no quotes": ["It's Tom's. ", "'Yes.' ", "He didn't."],
    "narrow stops in Han": ["什么?", "好!", "好吧.", "走"],
    "list marks": ["A.我们 3.他们"],
    "lines are sentences": ["标题\n", "正文第一句。", "第二句\n\n  ", "新段"],
    "hard-wrapped lines are not": ["hard wrapped\nline of text. ", "Next"],
    "line separators": ["前\u2028", "后。", "左\u0085", "右。", "上\x0b", "下。"],
    "leading space belongs to the first": ["\n\n好。", "坏。"],
    "nothing but space": ["  \n "],
}


@pytest.mark.parametrize("sentences", CASES.values(), ids=CASES)
def test_sentences_end_where_a_reader_says(sentences: list[str]) -> None:
    assert split_sentences("".join(sentences)) == sentences


def test_an_empty_text_has_no_sentence() -> None:
    assert sentence_starts("") == []


@pytest.mark.parametrize(
    "unit", [" ", "\n", "。", ".", '."', "好", "a. ", "。" + " " * 3, "'", "”"]
)
def test_long_runs_of_one_thing_are_no_trouble(unit: str) -> None:
    text = unit * 30_000

    assert sum(map(len, split_sentences(text))) == len(text)
