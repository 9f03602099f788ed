"""Special tokens of a tokenizer directory: their ids, and what an objective needs of them.

Read from the files themselves, in the order that transformers follows: tokenizer_config.json,
special_tokens_map.json, then the usual names of a model's class (older directories name none).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain_api.spec.objective import ObjectiveSpec

from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.tokenizer.files import (
    CONFIG_FILE,
    SPECIAL_TOKENS_FILE,
    TOKENIZER_FILE,
    read_json,
)

USUAL_NAMES: dict[str, tuple[str, ...]] = {
    "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
    "cls": ("[CLS]", "<s>"),
    "sep": ("[SEP]", "</s>"),
    "mask": ("[MASK]", "<mask>"),
    "bos": ("<s>", "<|endoftext|>"),
    "eos": ("</s>", "<|endoftext|>"),
}
"""Names by role that count when no file says what a role's token is, and it is a special one."""


@dataclass(frozen=True)
class SpecialTokens:
    """Ids of a tokenizer's special tokens, None for a role that it lacks.

    `length` is the largest id plus one, added tokens counted: the rows that a model needs.
    `end_of_document` is the token after each document. `special` holds the ids of all special
    and added tokens: never masked, and never drawn as a random replacement.
    """

    length: int
    pad: int | None = None
    unk: int | None = None
    cls: int | None = None
    sep: int | None = None
    mask: int | None = None
    bos: int | None = None
    eos: int | None = None
    end_of_document: int | None = None
    special: frozenset[int] = frozenset()


@dataclass(frozen=True)
class _Vocabulary:
    """All tokens by name; which were added; which of those are special."""

    ids: Mapping[str, int]
    added: frozenset[int]
    special: frozenset[str]


def load_special_tokens(directory: Path, *, end_of_document: str | None = None) -> SpecialTokens:
    """Read the special tokens of a local tokenizer directory.

    `end_of_document` is the token's text; the tokenizer's own end of sequence when None. Raises
    UserError for a token that the tokenizer lacks, DataError for files missing or damaged.
    """
    vocabulary = _read_vocabulary(directory)
    roles = _role_ids(directory, vocabulary)
    end = roles["eos"]
    if end_of_document is not None:
        end = _named(end_of_document, vocabulary)
    named = {token for token in (*roles.values(), end) if token is not None}
    return SpecialTokens(
        length=max(vocabulary.ids.values()) + 1,
        end_of_document=end,
        special=vocabulary.added | named,
        **roles,
    )


def check_objective(tokens: SpecialTokens, objective: ObjectiveSpec) -> None:
    """Raise UserError when the tokenizer lacks a token that the objective cannot do without."""
    if objective.mlm and tokens.mask is None:
        raise UserError(
            "the tokenizer has no mask token, which objective.mlm needs: name one as mask_token "
            "in its tokenizer_config.json, or train a tokenizer (tokenizer.train)"
        )
    if objective.mlm and objective.mlm.next_sentence and None in (tokens.cls, tokens.sep):
        raise UserError(
            "the tokenizer has no cls or no sep token, which objective.mlm.nextSentence needs: "
            "name them in its tokenizer_config.json"
        )
    if objective.clm and tokens.end_of_document is None:
        raise UserError(
            "the tokenizer has no end-of-document token (eos_token), which objective.clm needs: "
            "name one of its tokens in tokenizer.endOfDocument"
        )


def _read_vocabulary(directory: Path) -> _Vocabulary:
    data = read_json(directory / TOKENIZER_FILE, required=True)
    try:
        ids = _model_ids(data["model"]["vocab"])
        added = data.get("added_tokens") or []
        ids |= {str(token["content"]): int(token["id"]) for token in added}
        special = frozenset(str(token["content"]) for token in added if token["special"])
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{directory / TOKENIZER_FILE} is damaged: {error!r}") from error
    if not ids:
        raise DataError(f"{directory / TOKENIZER_FILE} has an empty vocabulary")
    return _Vocabulary(
        ids=ids, added=frozenset(int(token["id"]) for token in added), special=special
    )


def _model_ids(vocab: Any) -> dict[str, int]:
    """Unigram lists pairs of piece and score in order of id; the others map token to id."""
    if isinstance(vocab, list):
        return {str(piece[0]): number for number, piece in enumerate(vocab)}
    return {str(token): int(number) for token, number in vocab.items()}


def _role_ids(directory: Path, vocabulary: _Vocabulary) -> dict[str, int | None]:
    named = read_json(directory / SPECIAL_TOKENS_FILE) | read_json(directory / CONFIG_FILE)
    roles: dict[str, int | None] = {}
    for role, usual in USUAL_NAMES.items():
        key = f"{role}_token"
        token = _content(named[key]) if key in named else _usual(usual, vocabulary)
        roles[role] = None if token is None else vocabulary.ids.get(token)
    return roles


def _content(token: Any) -> str | None:
    """A token's text: written as a string, or as an object with its options."""
    if isinstance(token, dict):
        token = token.get("content")
    return token if isinstance(token, str) else None


def _usual(names: tuple[str, ...], vocabulary: _Vocabulary) -> str | None:
    return next((name for name in names if name in vocabulary.special), None)


def _named(token: str, vocabulary: _Vocabulary) -> int:
    if token not in vocabulary.ids:
        raise UserError(
            f"tokenizer.endOfDocument is {token!r}, which the tokenizer does not have: name one of "
            "its tokens"
        )
    return vocabulary.ids[token]
