"""Training byte-pair merges so that equal word counts give an equal vocabulary.

The library numbers the pieces inside words in the order of a randomly seeded hash table, and ties
between merges are broken by those numbers. Here every piece that merges start from has its number
beforehand, so that nothing is left to the hash table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

MAX_WORD_CHARACTERS = 128
"""Longer words are trained on in parts of this length: the library's time grows with a word's
square, so that text without a space or a stop would never be done with."""


@dataclass(frozen=True)
class Merges:
    """Tokens in order of id, and the merges in order of rank."""

    vocabulary: tuple[str, ...]
    merges: tuple[tuple[str, str], ...]


def train_merges(
    texts: Iterable[str],
    *,
    normalizer: normalizers.Normalizer | None,
    pre_tokenizer: pre_tokenizers.PreTokenizer,
    first: Sequence[str],
    vocab_size: int,
    min_frequency: int,
    max_piece_length: int,
    continuing_prefix: str | None = None,
) -> Merges:
    """Merge pairs until there are `vocab_size` tokens or no pair is frequent enough.

    `first` are the tokens with the ids from 0: special ones, and every piece of one character
    that words may be made of, with the continuing prefix where it stands inside a word. Other
    characters are left out of words. `max_piece_length` counts characters as the pre-tokenizer
    writes them (bytes under the byte-level alphabet), prefix not counted.
    """
    prefix = continuing_prefix or ""
    trainer = trainers.BpeTrainer(
        # the library checks no length when it merges two single characters
        vocab_size=vocab_size if max_piece_length > 1 else len(first),
        min_frequency=min_frequency,
        special_tokens=list(first),
        limit_alphabet=0,
        initial_alphabet=[],
        show_progress=False,
        max_token_length=max_piece_length + 1,  # a bound that no piece reaches
        **({"continuing_subword_prefix": prefix} if prefix else {}),
    )
    scratch = Tokenizer(models.BPE())
    if normalizer is not None:
        scratch.normalizer = normalizer
    parts = Regex(rf"[\s\S]{{1,{MAX_WORD_CHARACTERS}}}")
    scratch.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizer, pre_tokenizers.Split(parts, behavior="isolated")]
    )
    scratch.train_from_iterator(texts, trainer)
    model = json.loads(scratch.to_str())["model"]
    ordered = sorted(model["vocab"].items(), key=lambda item: item[1])
    return Merges(
        vocabulary=tuple(token for token, _ in ordered),
        merges=tuple((left, right) for left, right in model["merges"]),
    )
