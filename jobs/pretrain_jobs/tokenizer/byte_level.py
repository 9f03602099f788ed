"""Byte-level BPE as GPT-2 has it: every text can be written, no token is unknown.

The way text is cut into words before the merges is GPT-2's, or Qwen2's for its family, whose
class in transformers builds its own whatever tokenizer.json says.
"""

from __future__ import annotations

from collections.abc import Sequence

from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from pretrain_jobs.tokenizer.families import QWEN2, Family
from pretrain_jobs.tokenizer.merges import train_merges

QWEN2_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""Words of Qwen2's published tokenizer: digits one by one, line ends apart."""


def train_byte_level(
    texts: Sequence[str], spec: TokenizerTrainingSpec, *, family: Family
) -> tuple[Tokenizer, tuple[str, ...]]:
    """Train; the 256 bytes follow the special tokens. A piece's length counts bytes."""
    normalizer, pre_tokenizer = _word_rules(family, lowercase=spec.lowercase)
    trained = train_merges(
        texts,
        normalizer=normalizer,
        pre_tokenizer=pre_tokenizer,
        first=[*family.specials, *sorted(pre_tokenizers.ByteLevel.alphabet())],
        vocab_size=spec.vocab_size,
        min_frequency=spec.min_frequency,
        max_piece_length=spec.max_piece_length,
    )
    vocabulary = {token: number for number, token in enumerate(trained.vocabulary)}
    tokenizer = Tokenizer(models.BPE(vocabulary, list(trained.merges)))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, ()


def _word_rules(
    family: Family, *, lowercase: bool
) -> tuple[normalizers.Normalizer | None, pre_tokenizers.PreTokenizer]:
    if family is QWEN2:
        words = pre_tokenizers.Split(Regex(QWEN2_WORDS), behavior="isolated")
        as_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        return normalizers.NFC(), pre_tokenizers.Sequence([words, as_bytes])
    normalizer = normalizers.Lowercase() if lowercase else None
    return normalizer, pre_tokenizers.ByteLevel(add_prefix_space=False)
