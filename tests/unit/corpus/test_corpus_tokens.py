"""How documents become tokens: the library's own, of any length, and none of them special."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pretrain_jobs.corpus import bert_pieces, tokens
from pretrain_jobs.corpus.bert_pieces import BertPieceEncoder, is_bert, make_encoder
from pretrain_jobs.corpus.tokens import JOINT, BatchEncoder, Tokens
from pretrain_testing.corpora import wordpiece
from tokenizers import (
    AddedToken,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    trainers,
)

TEXT = (Path(__file__).parents[2] / "data" / "corpus" / "reviews.txt").read_text(encoding="utf-8")
PIECES = [*dict.fromkeys(TEXT), "the", "he", "##llo", "##s", "a", "##b", "##c", "x", "=", "ï"]


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([TEXT], trainer)
    tokenizer.encode_special_tokens = True
    return tokenizer


def unigram() -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300,
        special_tokens=["<pad>", "</s>", "<unk>"],
        unk_token="<unk>",
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXT.splitlines(), trainer)
    tokenizer.encode_special_tokens = True
    return tokenizer


@pytest.fixture(scope="module")
def bert() -> Tokenizer:
    return wordpiece(PIECES)


def assert_equal(found: Tokens, expected: Tokens) -> None:
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.starts.tolist() == expected.starts.tolist()
    assert found.ends.tolist() == expected.ends.tolist()


AWKWARD = (
    "酒店aé\u0301ñ\u0338=≠İß😀\u200d👩，。!?\"'-_ \t\n\u3000\u00a0\u0085\u2028\x00\x07\ufffd"
    "\uff21㐀𠮷𪚥〇豈가각々ー1２"
)


@cache
def both_encoders(lowercase: bool) -> tuple[BertPieceEncoder, BatchEncoder]:
    """Used for all examples, so that pieces are found among those of earlier texts too."""
    tokenizer = wordpiece(PIECES, lowercase=lowercase)
    return BertPieceEncoder(tokenizer), BatchEncoder(tokenizer)


@settings(max_examples=200, deadline=None)
@given(
    texts=st.lists(
        st.text(alphabet=st.one_of(st.sampled_from(AWKWARD), st.characters(codec="utf-8"))),
        min_size=1,
        max_size=5,
    ),
    lowercase=st.booleans(),
)
def test_looking_pieces_up_gives_the_tokens_of_the_library(
    texts: list[str], lowercase: bool
) -> None:
    looking_up, library = both_encoders(lowercase)

    assert_equal(looking_up.encode(texts), library.encode(texts))


@pytest.mark.parametrize("window", [1, 7, 64])
def test_pieces_are_looked_up_in_windows_of_any_size(
    bert: Tokenizer, monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    texts = [TEXT, "x" * 120 + "好", "", "the hello " * 30]
    whole = BatchEncoder(bert).encode(texts)
    monkeypatch.setattr(bert_pieces, "WINDOW_CHARACTERS", window)

    assert_equal(BertPieceEncoder(bert).encode(texts), whole)


def test_forgetting_pieces_changes_nothing(
    bert: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bert_pieces, "MAX_PIECES", 2)
    encoder = BertPieceEncoder(bert)

    for line in TEXT.splitlines():
        assert_equal(encoder.encode([line]), BatchEncoder(bert).encode([line]))


def test_only_tokenizers_of_berts_build_are_looked_up(bert: Tokenizer) -> None:
    with_word = wordpiece(PIECES)
    with_word.add_tokens([AddedToken("covid-19", normalized=False)])
    reading_specials = wordpiece(PIECES)
    reading_specials.encode_special_tokens = False

    assert is_bert(bert)
    assert not is_bert(with_word)
    assert not is_bert(reading_specials)
    assert not is_bert(byte_level())
    assert isinstance(make_encoder(byte_level()), BatchEncoder)


def test_words_added_to_a_vocabulary_are_found_in_text() -> None:
    tokenizer = wordpiece(PIECES)
    tokenizer.add_tokens([AddedToken("covid-19", normalized=False)])

    found = make_encoder(tokenizer).encode(["the covid-19 酒"])

    assert found.ids.tolist()[1] == tokenizer.token_to_id("covid-19")


@pytest.mark.parametrize("make", [lambda: wordpiece(PIECES), byte_level, unigram])
@pytest.mark.parametrize("window", [300, 900])
def test_long_documents_have_the_tokens_of_one_encode(
    make: Callable[[], Tokenizer], window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = make()
    texts = [TEXT * 3, TEXT.replace("\n", "").replace("，", "") * 2, "the hello " * 400, "好"]
    whole = BatchEncoder(tokenizer).encode(texts)
    monkeypatch.setattr(tokens, "WINDOW_CHARACTERS", window)
    monkeypatch.setattr(tokens, "OVERLAP_CHARACTERS", 200)

    assert_equal(BatchEncoder(tokenizer).encode(texts), whole)


def test_a_document_without_any_border_is_encoded_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = wordpiece(PIECES)
    text = "x" * 5000 + " 酒店"
    whole = BatchEncoder(tokenizer).encode([text])
    monkeypatch.setattr(tokens, "WINDOW_CHARACTERS", 300)
    monkeypatch.setattr(tokens, "OVERLAP_CHARACTERS", 100)

    assert_equal(BatchEncoder(tokenizer).encode([text]), whole)


def test_positions_count_characters_of_the_joined_texts(bert: Tokenizer) -> None:
    texts = ["𠮷酒", "店"]
    joined = JOINT.join(texts)

    found = make_encoder(bert).encode(texts)

    assert [joined[a:b] for a, b in zip(found.starts, found.ends, strict=True)] == [
        "𠮷",
        "酒",
        "店",
    ]


@pytest.mark.parametrize(
    "make", [lambda: wordpiece([*PIECES, "[", "]", "mask", "sep"]), byte_level]
)
def test_special_tokens_spelled_in_text_stay_text(make: Callable[[], Tokenizer]) -> None:
    tokenizer = make()
    text = "好[MASK]人[SEP]</s><|endoftext|>"

    ids = set(make_encoder(tokenizer).encode([text]).ids.tolist())

    special = {i for i, t in tokenizer.get_added_tokens_decoder().items() if t.special}
    unknown = tokenizer.token_to_id("[UNK]")
    assert ids.isdisjoint(special - {unknown})


def test_byte_level_text_with_special_spellings_decodes_to_itself() -> None:
    tokenizer = byte_level()
    text = "好[MASK]人<|endoftext|>"

    ids = make_encoder(tokenizer).encode([text]).ids.tolist()

    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_a_run_too_long_for_the_model_is_one_unknown_token(bert: Tokenizer) -> None:
    found = make_encoder(bert).encode(["x" * 120 + "酒"])

    assert found.ids.tolist() == [bert.token_to_id("[UNK]"), bert.token_to_id("酒")]
    assert (found.ends - found.starts).tolist() == [120, 1]


def test_no_text_has_no_tokens(bert: Tokenizer) -> None:
    for encoder in (make_encoder(bert), BatchEncoder(bert)):
        assert len(encoder.encode([]).ids) == 0
        assert len(encoder.encode(["", " \n"]).ids) == 0


def test_a_long_text_has_the_tokens_of_its_lines_once_each(bert: Tokenizer) -> None:
    encoder = BertPieceEncoder(bert)
    line = TEXT.replace("\n", "").replace(" ", "")

    found = encoder.encode([line * 300])

    assert len(found.ids) == 300 * len(encoder.encode([line]).ids)
    assert np.array_equal(found.starts, np.sort(found.starts))
