"""Tokenizers that others made: copied as they are, or converted from a vocabulary."""

import json
from pathlib import Path

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.tokenizer.load import fetch_tokenizer, load_tokenizer, tokenizer_sha256
from pretrain_jobs.tokenizer.special import load_special_tokens
from pretrain_jobs.tokenizer.train import train_tokenizer
from pretrain_testing.tokenizer_texts import texts


@pytest.fixture
def trained(tmp_path) -> Path:
    directory = tmp_path / "trained"
    train_tokenizer(texts(), TokenizerTrainingSpec(vocab_size=400), architecture="bert").save(
        directory
    )
    return directory


def fetch(root: Path, name: str) -> Path:
    fetch_tokenizer(StorageSpec(uri=root.as_uri()), name, root / "local")
    return root / "local"


def test_a_directory_is_copied_byte_for_byte_and_nothing_else_of_it(trained, tmp_path):
    (trained / "model.safetensors").write_bytes(b"weights")

    local = fetch(tmp_path, "trained")

    assert {path.name: path.read_bytes() for path in local.iterdir()} == {
        path.name: path.read_bytes() for path in trained.glob("*.json")
    }
    assert tokenizer_sha256(local) == tokenizer_sha256(trained)


def test_saved_truncation_and_padding_do_not_act_and_stay_in_the_file(trained):
    saved = load_tokenizer(trained)
    saved.enable_truncation(max_length=128)
    saved.enable_padding(length=128)
    saved.save(str(trained / "tokenizer.json"))
    before = tokenizer_sha256(trained)

    encoded = load_tokenizer(trained).encode("好" * 1_000, add_special_tokens=False)

    assert len(encoded.ids) == 1_000
    assert tokenizer_sha256(trained) == before


def test_a_special_token_that_stands_in_a_text_is_text(trained):
    special = load_special_tokens(trained).special

    encoded = load_tokenizer(trained).encode("好[MASK]人[SEP]", add_special_tokens=False)

    unknown = load_special_tokens(trained).unk
    assert not (set(encoded.ids) - {unknown}) & special


def test_a_long_word_is_unknown(trained):
    tokens = load_tokenizer(trained).encode("x" * 120 + "好", add_special_tokens=False).tokens

    assert tokens == ["[UNK]", "好"]


@pytest.mark.parametrize(("lower", "expected"), [(None, ["the"]), (False, ["[UNK]"])])
def test_a_vocabulary_of_bert_is_converted(tmp_path, lower, expected):
    source = tmp_path / "bert"
    source.mkdir()
    words = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "好", "##s"]
    (source / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    if lower is not None:
        (source / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))

    local = fetch(tmp_path, "bert")

    tokens = load_special_tokens(local)
    assert (tokens.pad, tokens.unk, tokens.cls, tokens.sep, tokens.mask) == (0, 2, 3, 4, 5)
    assert tokens.length == len(words)
    assert load_tokenizer(local).encode("The", add_special_tokens=False).tokens == expected
    assert load_tokenizer(local).encode("好").tokens == ["[CLS]", "好", "[SEP]"]
    assert not (local / "vocab.txt").exists()


def test_a_vocabulary_without_its_special_tokens_is_refused_by_their_names(tmp_path):
    source = tmp_path / "bert"
    source.mkdir()
    (source / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\nthe\n")

    with pytest.raises(DataError, match=r"vocab\.txt lacks \[SEP\], \[MASK\]"):
        fetch(tmp_path, "bert")


def test_a_directory_without_tokenizer_is_refused_with_what_it_has(tmp_path):
    source = tmp_path / "bert"
    source.mkdir()
    (source / "spiece.model").write_bytes(b"")

    with pytest.raises(UserError, match=r"neither tokenizer\.json nor vocab\.txt.*spiece\.model"):
        fetch(tmp_path, "bert")


def test_a_damaged_tokenizer_is_refused(tmp_path):
    source = tmp_path / "bert"
    source.mkdir()
    (source / "tokenizer.json").write_text('{"model": {"type": "Nothing"}}')

    with pytest.raises(DataError, match=r"tokenizer\.json is no tokenizer"):
        fetch(tmp_path, "bert")
