"""Training a tokenizer: one entry for the three algorithms.

Each algorithm has its module. All give the same bytes for the same texts, whatever their order
and the number of threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from tokenizers import Tokenizer

from pretrain_jobs.errors import UserError
from pretrain_jobs.tokenizer.byte_level import train_byte_level
from pretrain_jobs.tokenizer.families import (
    QWEN2,
    Family,
    TrainingAlgorithm,
    family_of,
    model_inputs,
)
from pretrain_jobs.tokenizer.save import save_tokenizer, with_template
from pretrain_jobs.tokenizer.special import USUAL_NAMES
from pretrain_jobs.tokenizer.unigram import train_unigram
from pretrain_jobs.tokenizer.wordpiece import train_wordpiece

_TRAINERS = {
    "wordpiece": train_wordpiece,
    "byteLevelBpe": train_byte_level,
    "unigram": train_unigram,
}


@dataclass(frozen=True)
class TrainedTokenizer:
    """A tokenizer with what its files say of it, and a sentence for each thing to know."""

    tokenizer: Tokenizer
    algorithm: TrainingAlgorithm
    family: Family
    lowercase: bool
    inputs: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def length(self) -> int:
        """Tokens of the vocabulary, special ones counted."""
        return int(self.tokenizer.get_vocab_size())

    def save(self, directory: Path) -> None:
        """Write the Hugging Face directory; a role without token is null there."""
        roles = {f"{role}_token": self.family.roles.get(role) for role in USUAL_NAMES}
        save_tokenizer(
            self.tokenizer,
            directory,
            config={
                **roles,
                "do_lower_case": self.lowercase,
                "model_input_names": list(self.inputs),
            },
        )


def train_tokenizer(
    texts: Sequence[str], spec: TokenizerTrainingSpec, *, architecture: str | None
) -> TrainedTokenizer:
    """Train with the special tokens that the architecture needs, at ids from 0.

    A text too small for `vocab_size` gives a smaller vocabulary and a warning. UserError for a
    combination that transformers could not load again.
    """
    family = family_of(architecture)
    algorithm = spec.algorithm or family.algorithm
    _check(family, algorithm, spec)
    tokenizer, warnings = _TRAINERS[algorithm](texts, spec, family=family)
    with_template(tokenizer, family)
    return TrainedTokenizer(
        tokenizer=tokenizer,
        algorithm=algorithm,
        family=family,
        lowercase=spec.lowercase,
        inputs=model_inputs(architecture),
        warnings=(*warnings, *_size_warnings(int(tokenizer.get_vocab_size()), spec)),
    )


def _check(family: Family, algorithm: TrainingAlgorithm, spec: TokenizerTrainingSpec) -> None:
    """Refuse what could not be loaded again, or has no room."""
    if family is QWEN2 and (algorithm != "byteLevelBpe" or spec.lowercase):
        raise UserError(
            "model.architecture qwen2 needs tokenizer.train.algorithm byteLevelBpe and lowercase "
            "false: transformers loads every Qwen2 tokenizer as one"
        )
    if algorithm != "byteLevelBpe" and family.unknown is None:
        raise UserError(
            f"tokenizer.train.algorithm {algorithm} needs an unknown token, which the "
            "architecture's special tokens lack: use byteLevelBpe"
        )
    least = 256 + len(family.specials)
    if algorithm == "byteLevelBpe" and spec.vocab_size < least:
        raise UserError(
            f"tokenizer.train.vocabSize is {spec.vocab_size}, but byteLevelBpe needs at least "
            f"{least}: 256 bytes and {len(family.specials)} special tokens"
        )


def _size_warnings(length: int, spec: TokenizerTrainingSpec) -> tuple[str, ...]:
    if length >= spec.vocab_size:
        return ()
    return (
        f"the text is enough for {length} tokens, not for the {spec.vocab_size} of "
        "tokenizer.train.vocabSize: give more text or ask for fewer",
    )
