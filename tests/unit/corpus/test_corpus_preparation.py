"""From documents to a shard's arrays: borders of documents, sentences and words on tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_api.spec.corpus import CleaningSpec
from pretrain_jobs.corpus.bert_pieces import make_encoder
from pretrain_jobs.corpus.preparation import CleanDocument, Preparation, Recipe, Vocabulary
from pretrain_jobs.corpus.readers.records import Document, Reject, RejectCause
from pretrain_jobs.corpus.sentences import sentence_starts, split_sentences
from pretrain_jobs.corpus.words import SegmenterName, UserWord, make_segmenter
from pretrain_jobs.dataset.format.native import Shard
from pretrain_jobs.errors import DataError
from pretrain_testing.corpora import BERT_SPECIALS, wordpiece
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

HAN = (
    "乌鲁木齐是城市中华人民共和国成立研究生命的起源很忙"
    "𠮷野家㐀字八年北京大学好人民他走了真吗酒店天气"
)
PIECES = [*HAN, "，", "。", "！", "？", "“", "”", "i", "##i", "the", "##re", "me", ".", "word"]


def document(text: str) -> Document:
    return Document(text, "file:///a.jsonl", 1, 0)


def preparation(
    tokenizer: Tokenizer | None = None,
    *,
    segmenter: SegmenterName = "jieba",
    cleaning: CleaningSpec | None = None,
    user_words: Sequence[UserWord] = (),
    special: frozenset[int] = frozenset(range(5)),
    unknown: int | None = 1,
) -> Preparation:
    return Preparation(
        Recipe(
            cleaning=cleaning or CleaningSpec(),
            encoder=make_encoder(tokenizer or wordpiece(PIECES)),
            segmenter=make_segmenter(segmenter, user_words),
            vocabulary=Vocabulary(dtype="uint16", unknown=unknown, special=special),
        )
    )


def prepare(preparing: Preparation, *texts: str) -> Shard:
    cleaned = [preparing.clean(document(text)) for text in texts]
    return preparing.encode([one for one in cleaned if isinstance(one, CleanDocument)])


def bits(shard: Shard) -> str:
    return "".join("1" if bit else "0" for bit in shard.word_starts)


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("乌鲁木齐是城市，中华人民共和国成立。", "100011011000000101"),
        ("研究生命的起源，研究生很忙。", "10101101100111"),
        ("𠮷野家，㐀字，〇八年，𪚥。", "1101111110111"),
        ("İİİ北京大学", "1001000"),
        ("there", "10"),
        ("there me", "101"),
    ],
)
def test_word_starts_follow_the_segmenter(text: str, starts: str) -> None:
    assert bits(prepare(preparation(), text)) == starts


def test_an_unknown_character_inside_a_word_stays_in_it() -> None:
    tokenizer = wordpiece([piece for piece in PIECES if piece != "京"])

    shard = prepare(preparation(tokenizer), "北京大学")

    assert shard.tokens[1] == tokenizer.token_to_id("[UNK]")
    assert bits(shard) == "1000"


def test_one_unknown_token_over_several_characters_is_one_word() -> None:
    shard = prepare(preparation(), "😀😀😀好")

    assert len(shard.tokens) == 2
    assert bits(shard) == "11"


def test_marks_of_no_width_change_neither_ids_nor_words() -> None:
    marked = prepare(preparation(), "好\u200b人\u200b民\ufeff")
    plain = prepare(preparation(), "好人民")

    assert marked.tokens.tolist() == plain.tokens.tolist()
    assert bits(marked) == bits(plain) == "110"


def test_nul_does_not_cut_the_text() -> None:
    preparing = preparation()

    assert (
        prepare(preparing, "好\0人").tokens.tolist() == prepare(preparing, "好人").tokens.tolist()
    )


def test_bytes_of_one_character_are_one_word() -> None:
    tokenizer = Tokenizer(
        models.BPE({c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}, [])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.encode_special_tokens = True

    shard = prepare(preparation(tokenizer, special=frozenset(), unknown=None), "龘 好。")

    assert len(shard.tokens) == 10
    assert bits(shard) == "1001100100"


def test_a_space_before_a_word_belongs_to_the_word_and_its_sentence() -> None:
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "▁Yes.": 1, "▁It": 2, "▁is.": 3}, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.encode_special_tokens = True
    preparing = preparation(tokenizer, segmenter="whitespace", special=frozenset(), unknown=0)

    shard = prepare(preparing, "Yes. It is.")

    assert shard.tokens.tolist() == [1, 2, 3]
    assert shard.sentence_offsets.tolist() == [0, 1, 3]
    assert bits(shard) == "111"


def test_user_words_are_grouped() -> None:
    preparing = preparation(user_words=[UserWord("很忙的天气", 100_000)])

    assert bits(prepare(preparing, "是很忙的天气。")) == "1100001"


def test_without_whole_words_every_token_starts_one() -> None:
    assert bits(prepare(preparation(segmenter="none"), "北京大学")) == "1111"


def test_documents_and_sentences_lie_where_their_tokens_do() -> None:
    shard = prepare(preparation(), "好。", "“真的！”他走了。", "好")

    assert shard.document_offsets.tolist() == [0, 2, 11, 12]
    assert shard.sentence_offsets.tolist() == [0, 2, 7, 11, 12]
    assert (shard.documents, shard.sentences) == (3, 4)


def test_documents_without_tokens_are_counted_and_not_stored() -> None:
    preparing = preparation()

    shard = prepare(preparing, "", "好。", " \n", "\u0007", "好")

    assert shard.document_offsets.tolist() == [0, 2, 3]
    assert preparing.statistics.removed == {"empty": 3}
    assert preparing.statistics.documents_read == 5


def test_every_removal_is_counted_by_its_cause() -> None:
    cleaning = CleaningSpec(min_characters=2, max_characters=3)
    preparing = preparation(cleaning=cleaning)

    prepare(preparing, "好", "好人", "好人民", "好人民是", "")

    statistics = preparing.statistics
    assert statistics.removed == {"empty": 1, "too long": 1, "too short": 1}
    assert statistics.documents + sum(statistics.removed.values()) == statistics.documents_read == 5


def test_statistics_count_tokens_unknowns_and_their_characters() -> None:
    preparing = preparation()

    prepare(preparing, "x" * 120 + "好")

    statistics = preparing.statistics
    assert (statistics.tokens, statistics.unknown_tokens) == (2, 1)
    assert (statistics.characters, statistics.unknown_characters) == (121, 120)
    assert statistics.unknown_rate == 0.5
    assert statistics.characters_per_token == 60.5
    assert statistics.word_tokens.counts == (0, 2)


def test_special_spellings_that_a_model_finds_become_unknown_and_are_counted() -> None:
    tokenizer = Tokenizer(
        models.Unigram([("<unk>", 0.0), ("</s>", 0.0), ("▁", -1.0), ("好", -1.0)], 0)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.encode_special_tokens = True
    preparing = preparation(tokenizer, special=frozenset({0, 1}), unknown=0)

    shard = prepare(preparing, "好</s>好")

    assert 1 not in shard.tokens
    assert preparing.statistics.special_literals == 1


def test_special_spellings_without_an_unknown_token_are_refused() -> None:
    tokenizer = wordpiece([*PIECES])

    with pytest.raises(DataError, match="spells special token"):
        prepare(preparation(tokenizer, special=frozenset({9}), unknown=None), HAN)


def test_a_document_on_which_the_splitter_fails_is_a_reject() -> None:
    def failing(text: str) -> list[int]:
        if "木" in text:
            raise ValueError("no sentence today")
        return sentence_starts(text)

    sound = preparation()
    recipe = Recipe(
        cleaning=CleaningSpec(),
        encoder=make_encoder(wordpiece(PIECES)),
        segmenter=make_segmenter("none"),
        vocabulary=Vocabulary(dtype="uint16", unknown=1, special=frozenset()),
        split_sentences=failing,
    )

    outcome = Preparation(recipe).clean(document("木。"))

    assert isinstance(outcome, Reject)
    assert outcome.cause == RejectCause.SPLITTER
    assert "ValueError: no sentence today" in outcome.message
    assert isinstance(sound.clean(document("木。")), CleanDocument)


TEXTS = st.lists(
    st.text(alphabet=HAN[:20] + "，。！”“ \nthereme.😀", min_size=1, max_size=40),
    min_size=1,
    max_size=8,
)
PREPARING = preparation()
TOKENIZER = wordpiece(PIECES)


@settings(max_examples=40, deadline=None)
@given(texts=TEXTS)
def test_arrays_of_a_batch_are_those_of_its_documents(texts: list[str]) -> None:
    together = prepare(PREPARING, *texts)

    alone = [prepare(PREPARING, text) for text in texts if text.strip()]

    assert together.tokens.tolist() == [t for shard in alone for t in shard.tokens.tolist()]
    assert bits(together) == "".join(bits(shard) for shard in alone)
    assert together.documents == sum(shard.documents for shard in alone)
    assert together.sentences == sum(shard.sentences for shard in alone)


@settings(max_examples=100, deadline=None)
@given(texts=TEXTS)
def test_sentences_hold_the_tokens_of_their_text(texts: list[str]) -> None:
    shard = prepare(PREPARING, *texts)

    lengths = [
        len(TOKENIZER.encode(sentence, add_special_tokens=False).ids)
        for text in texts
        for sentence in split_sentences(text)
    ]
    assert np.diff(shard.sentence_offsets).tolist() == [length for length in lengths if length]
    assert set(shard.document_offsets.tolist()) <= set(shard.sentence_offsets.tolist())
    assert shard.word_starts[shard.document_offsets[:-1]].all()


def test_special_tokens_are_not_added() -> None:
    shard = prepare(preparation(), "好", "好人")

    assert not set(shard.tokens.tolist()) & set(range(len(BERT_SPECIALS)))
