"""Text without a space or a stop in it: every algorithm learns from all of it, and has an end."""

import random

import pytest
from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from pretrain_jobs.tokenizer.merges import MAX_WORD_CHARACTERS, train_merges
from pretrain_jobs.tokenizer.train import train_tokenizer
from tokenizers import pre_tokenizers

WORDS = ("研究生命", "北京大学", "天气", "城市", "的", "是", "人")


def run_of_words(characters: int, *, seed: int = 1) -> str:
    """Words one after another, nothing between them."""
    chosen = random.Random(seed).choices(WORDS, k=characters)
    return "".join(chosen)[:characters]


@pytest.mark.parametrize(
    ("algorithm", "architecture"),
    [("byteLevelBpe", "gpt2"), ("byteLevelBpe", "qwen2"), ("unigram", "bert")],
)
def test_a_document_of_one_long_run_takes_part_to_its_end(algorithm, architecture):
    rare = "尾声尾声尾声"
    spec = TokenizerTrainingSpec(algorithm=algorithm, vocab_size=600, lowercase=False)

    trained = train_tokenizer([run_of_words(8_000) + rare], spec, architecture=architecture)

    encode = trained.tokenizer.encode
    assert len(encode("北京大学", add_special_tokens=False).tokens) < 4
    assert len(encode(rare, add_special_tokens=False).tokens) <= 6
    assert "[UNK]" not in encode(rare, add_special_tokens=False).tokens


def test_no_piece_of_a_run_is_longer_than_the_parts_that_it_is_trained_in():
    trained = train_merges(
        ["x" * 5_000],
        normalizer=None,
        pre_tokenizer=pre_tokenizers.Whitespace(),
        first=["x"],
        vocab_size=1_000,
        min_frequency=2,
        max_piece_length=5_000,
    )

    assert max(map(len, trained.vocabulary)) == MAX_WORD_CHARACTERS


def test_words_of_ordinary_length_are_not_parted():
    words = [f"{'ab' * (length // 2)}" for length in range(2, MAX_WORD_CHARACTERS, 2)]

    trained = train_merges(
        words * 3,
        normalizer=None,
        pre_tokenizer=pre_tokenizers.Whitespace(),
        first=["a", "b"],
        vocab_size=2_000,
        min_frequency=2,
        max_piece_length=1_000,
    )

    assert set(words) <= set(trained.vocabulary)
