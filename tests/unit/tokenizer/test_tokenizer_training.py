"""Tokenizers trained on small texts: vocabulary, special tokens, limits, refusals."""

import json
import random
from pathlib import Path

import pytest
from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from pretrain_jobs.errors import UserError
from pretrain_jobs.tokenizer.train import TrainedTokenizer, train_tokenizer
from pretrain_testing.tokenizer_texts import texts

ALGORITHMS = ("wordpiece", "byteLevelBpe", "unigram")


def train(algorithm, vocab_size=400, *, architecture="bert", documents=None, **fields):
    spec = TokenizerTrainingSpec(
        algorithm=algorithm, vocab_size=vocab_size, **({"lowercase": False} | fields)
    )
    return train_tokenizer(documents or texts(), spec, architecture=architecture)


def tokens(trained: TrainedTokenizer, text: str) -> list[str]:
    return trained.tokenizer.encode(text, add_special_tokens=False).tokens


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_order_of_the_texts_does_not_change_a_byte(algorithm):
    shuffled = texts()
    random.Random(7).shuffle(shuffled)

    first = train(algorithm).tokenizer.to_str()
    second = train(algorithm, documents=shuffled).tokenizer.to_str()

    assert first == second


@pytest.mark.parametrize(
    ("algorithm", "vocab_size"), [("wordpiece", 200), ("byteLevelBpe", 330), ("unigram", 150)]
)
def test_a_vocabulary_has_the_size_that_was_asked_for(algorithm, vocab_size):
    trained = train(algorithm, vocab_size=vocab_size)

    assert trained.length == vocab_size
    assert trained.warnings == ()


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_too_large_a_vocabulary_gives_the_real_length_and_a_warning(algorithm):
    trained = train(algorithm, vocab_size=50_000)

    assert 100 < trained.length < 50_000
    assert f"enough for {trained.length} tokens" in trained.warnings[0]
    assert "50000" in trained.warnings[0]


@pytest.mark.parametrize(
    ("architecture", "algorithm", "expected"),
    [
        ("bert", "wordpiece", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]),
        ("modernbert", "wordpiece", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]),
        ("bert", "unigram", ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]),
        ("roberta", "byteLevelBpe", ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
        ("roberta", "wordpiece", ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
        ("gpt2", "byteLevelBpe", ["<|endoftext|>"]),
        ("qwen2", "byteLevelBpe", ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]),
    ],
)
def test_special_tokens_have_the_first_ids(architecture, algorithm, expected):
    trained = train(algorithm, architecture=architecture)

    assert [trained.tokenizer.id_to_token(i) for i in range(len(expected))] == expected


def test_the_algorithm_follows_from_the_architecture_when_left_out():
    assert train(None, architecture="bert").algorithm == "wordpiece"
    assert train(None, architecture="roberta").algorithm == "byteLevelBpe"


@pytest.mark.parametrize(
    ("architecture", "around"), [("bert", "[CLS] [SEP]"), ("roberta", "<s> </s>")]
)
def test_a_text_is_put_between_its_special_tokens(architecture, around):
    trained = train("wordpiece", architecture=architecture)

    encoded = trained.tokenizer.encode("公园").tokens

    assert [encoded[0], encoded[-1]] == around.split()
    assert encoded[1:-1] == tokens(trained, "公园")


def test_han_characters_are_single_tokens_of_a_wordpiece_and_words_have_pieces():
    trained = train("wordpiece")

    assert tokens(trained, "老人在海边") == list("老人在海边")
    assert tokens(trained, "the clock") == ["the", "clock"]
    assert any(token.startswith("##") for token in tokens(trained, "clockwork"))


def test_byte_level_tokens_restore_any_text():
    trained = train("byteLevelBpe", architecture="gpt2")
    text = "𠮷野家 wasn't  open\n今天 😀"

    ids = trained.tokenizer.encode(text).ids

    assert trained.tokenizer.decode(ids) == text


def test_unigram_finds_words_of_several_characters():
    trained = train("unigram")

    assert "▁clock" in tokens(trained, "the clock")
    assert max(len(token) for token in tokens(trained, "火车从南京开往武汉")) > 1


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("longest", [1, 2, 3, 5])
def test_no_piece_is_longer_than_asked_for(algorithm, longest):
    trained = train(algorithm, vocab_size=3_000, max_piece_length=longest)
    special = set(trained.family.specials)

    pieces = [p.removeprefix("##") for p in trained.tokenizer.get_vocab() if p not in special]

    assert max(len(piece) for piece in pieces) == longest


def test_a_piece_of_a_wordpiece_is_as_frequent_as_asked_for():
    documents = ["zebra zebra zebra", "quilt"]

    trained = train("wordpiece", documents=documents, min_frequency=2)

    assert tokens(trained, "zebra") == ["zebra"]
    assert len(tokens(trained, "quilt")) > 1


@pytest.mark.parametrize("algorithm", ["wordpiece", "unigram"])
def test_the_rarest_characters_are_left_out_when_room_is_short(algorithm):
    documents = ["".join(chr(0x4E00 + i) for i in range(n)) for n in range(1, 120)]

    trained = train(algorithm, vocab_size=64, documents=documents)

    assert trained.length <= 64
    assert "rarest are unknown" in trained.warnings[0]
    assert tokens(trained, chr(0x4E00)) != ["[UNK]"]
    assert tokens(trained, chr(0x4E00 + 118))[-1] == "[UNK]" or algorithm == "unigram"


@pytest.mark.parametrize(("lowercase", "expected"), [(True, ["the"]), (False, ["The"])])
def test_case_is_folded_when_asked_for(lowercase, expected):
    assert tokens(train("wordpiece", lowercase=lowercase, vocab_size=1_000), "The") == expected


def test_a_literal_special_token_in_the_text_never_becomes_a_piece():
    documents = [*texts(), *["[MASK] [MASK] </s> <mask>"] * 50]

    vocabulary = train("wordpiece", documents=documents, architecture="bert").tokenizer.get_vocab()

    assert "<mask>" not in vocabulary
    assert "</s>" not in vocabulary


def test_saved_files_are_the_same_for_the_same_texts(tmp_path: Path):
    names = ["special_tokens_map.json", "tokenizer.json", "tokenizer_config.json"]
    for folder in ("a", "b"):
        train("wordpiece").save(tmp_path / folder)

    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
        for folder in ("a", "b")
    )

    assert sorted(first) == names
    assert first == second
    config = json.loads(first["tokenizer_config.json"])
    assert config["mask_token"] == "[MASK]"
    assert config["model_input_names"] == ["input_ids", "token_type_ids", "attention_mask"]


@pytest.mark.parametrize(
    ("architecture", "algorithm", "fields", "named"),
    [
        ("t5", "unigram", {}, "'t5'"),
        ("gpt2", "wordpiece", {}, "byteLevelBpe"),
        ("gpt2", "unigram", {}, "byteLevelBpe"),
        ("qwen2", "byteLevelBpe", {"lowercase": True}, "lowercase"),
        ("gpt2", "byteLevelBpe", {"vocab_size": 256}, "257"),
    ],
)
def test_what_cannot_work_is_refused_by_name(architecture, algorithm, fields, named):
    with pytest.raises(UserError, match=named):
        train(algorithm, architecture=architecture, **fields)
