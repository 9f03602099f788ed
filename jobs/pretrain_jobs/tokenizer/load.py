"""Loading tokenizers: from storage into a local directory, and from there into memory.

A directory's files are taken as they are, never written back: what decides ids keeps its hash.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pretrain_api.spec.storage import StorageSpec
from tokenizers import Tokenizer

from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.storage import ObjectInfo, ObjectStore, open_store
from pretrain_jobs.tokenizer.families import BERT
from pretrain_jobs.tokenizer.files import (
    CONFIG_FILE,
    TOKENIZER_FILE,
    TOKENIZER_FILES,
    read_json,
    tokenizer_sha256,
)
from pretrain_jobs.tokenizer.save import save_tokenizer, with_template
from pretrain_jobs.tokenizer.wordpiece import bert_normalizer, wordpiece_tokenizer

__all__ = ["fetch_tokenizer", "list_tokenizer_files", "load_tokenizer", "tokenizer_sha256"]

VOCABULARY_FILE = "vocab.txt"
"""One token a line: all that older BERT directories have."""


def load_tokenizer(directory: Path) -> Tokenizer:
    """The tokenizer of a local directory, made ready for text of any length.

    Saved truncation and padding are switched off, and special tokens that stand in a text are
    encoded as text. Encode with `add_special_tokens=False` for a stream without special tokens.
    DataError when tokenizer.json is missing or cannot be read.
    """
    path = directory / TOKENIZER_FILE
    read_json(path, required=True)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises it bare
        raise DataError(f"{path} is no tokenizer that can be loaded: {error}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.encode_special_tokens = True
    return tokenizer


def list_tokenizer_files(storage: StorageSpec, uri: str) -> tuple[ObjectStore, list[ObjectInfo]]:
    """The store at the URI and the files there that make a tokenizer, by name.

    UserError when neither tokenizer.json nor vocab.txt is there; the message names what is.
    """
    store = open_store(storage, uri)
    wanted = {*TOKENIZER_FILES, VOCABULARY_FILE}
    present = list(store.list())
    found = {info.key: info for info in present if info.key in wanted}
    if TOKENIZER_FILE in found:
        found.pop(VOCABULARY_FILE, None)
    if not {TOKENIZER_FILE, VOCABULARY_FILE} & found.keys():
        there = ", ".join(info.key for info in present[:10]) or "nothing"
        raise UserError(
            f"tokenizer.uri {uri} has neither {TOKENIZER_FILE} nor {VOCABULARY_FILE}; it has "
            f"{there}: give a Hugging Face tokenizer directory"
        )
    return store, [found[name] for name in sorted(found)]


def fetch_tokenizer(storage: StorageSpec, uri: str, directory: Path) -> None:
    """Copy a Hugging Face tokenizer directory; one that only has vocab.txt is converted."""
    store, files = list_tokenizer_files(storage, uri)
    for info in files:
        store.download(info.key, directory / info.key)
    if not (directory / TOKENIZER_FILE).is_file():
        _convert_vocabulary(directory, uri)
    load_tokenizer(directory)


def _convert_vocabulary(directory: Path, uri: str) -> None:
    """Replace vocab.txt by the three files that it stands for, as BERT reads it."""
    path = directory / VOCABULARY_FILE
    config = read_json(directory / CONFIG_FILE)
    vocabulary = _read_vocabulary(path, uri)
    tokenizer = _bert_tokenizer(vocabulary, config)
    path.unlink()
    save_tokenizer(
        tokenizer,
        directory,
        config=config | {f"{role}_token": token for role, token in BERT.roles.items()},
    )


def _read_vocabulary(path: Path, uri: str) -> dict[str, int]:
    try:
        lines = path.read_text(encoding="utf-8-sig").rstrip("\n").split("\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{uri}/{VOCABULARY_FILE} is not UTF-8: {error}") from error
    vocabulary = {line.rstrip("\r"): number for number, line in enumerate(lines)}
    missing = [token for token in BERT.specials if token not in vocabulary]
    if missing:
        raise DataError(
            f"{uri}/{VOCABULARY_FILE} lacks {', '.join(missing)}, which every BERT vocabulary has"
        )
    return vocabulary


def _bert_tokenizer(vocabulary: dict[str, int], config: dict[str, Any]) -> Tokenizer:
    normalizer = bert_normalizer(
        lowercase=config.get("do_lower_case", True),
        strip_accents=config.get("strip_accents"),
        chinese=config.get("tokenize_chinese_chars", True),
    )
    tokenizer = wordpiece_tokenizer(vocabulary, normalizer, unknown=BERT.roles["unk"])
    return with_template(tokenizer, BERT)
