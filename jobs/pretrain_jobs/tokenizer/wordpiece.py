"""WordPiece as BERT has it: Han characters and punctuation alone, other words in pieces with ##.

Pieces are found by merges, as the tokenizers library does it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

from pretrain_jobs.tokenizer.families import Family
from pretrain_jobs.tokenizer.merges import train_merges

CONTINUING = "##"
MAX_CHARACTERS_PER_WORD = 100
"""Longer words are unknown, as in BERT's own tokenizer."""


@dataclass(frozen=True)
class _Pieces:
    """How often each character stands at a word's beginning, and inside of one."""

    initial: Counter[str]
    continuing: Counter[str]


def train_wordpiece(
    texts: Sequence[str], spec: TokenizerTrainingSpec, *, family: Family
) -> tuple[Tokenizer, tuple[str, ...]]:
    """Train, and say what was left out: the rarest characters when they are too many."""
    normalizer = bert_normalizer(lowercase=spec.lowercase)
    pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    pieces = _count_pieces(texts, normalizer, pre_tokenizer)
    alphabet, warnings = _alphabet(pieces, room=spec.vocab_size - len(family.specials))
    trained = train_merges(
        texts,
        normalizer=normalizer,
        pre_tokenizer=pre_tokenizer,
        first=[*family.specials, *alphabet],
        vocab_size=spec.vocab_size,
        min_frequency=spec.min_frequency,
        max_piece_length=spec.max_piece_length,
        continuing_prefix=CONTINUING,
    )
    vocabulary = {token: number for number, token in enumerate(trained.vocabulary)}
    return wordpiece_tokenizer(vocabulary, normalizer, unknown=str(family.unknown)), warnings


def bert_normalizer(
    *, lowercase: bool, strip_accents: bool | None = None, chinese: bool = True
) -> normalizers.Normalizer:
    """BERT's normaliser; accents go with the case when `strip_accents` is None."""
    return normalizers.BertNormalizer(
        handle_chinese_chars=chinese, strip_accents=strip_accents, lowercase=lowercase
    )


def wordpiece_tokenizer(
    vocabulary: dict[str, int], normalizer: normalizers.Normalizer, *, unknown: str
) -> Tokenizer:
    """A tokenizer of BERT's build over a vocabulary of token to id, without a template."""
    model = models.WordPiece(
        vocabulary, unk_token=unknown, max_input_chars_per_word=MAX_CHARACTERS_PER_WORD
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUING)
    return tokenizer


def _count_pieces(
    texts: Iterable[str],
    normalizer: normalizers.Normalizer,
    pre_tokenizer: pre_tokenizers.PreTokenizer,
) -> _Pieces:
    characters: Counter[str] = Counter()
    words: Counter[str] = Counter()
    alone: dict[int, str] = {}
    for text in texts:
        normalized = normalizer.normalize_str(text)
        fresh = [c for c in set(normalized) if c not in characters]
        characters.update(normalized)
        alone |= {ord(c): " " for c in fresh if _stands_alone(c, pre_tokenizer)}
        words.update(normalized.translate(alone).split())
    initial = Counter({c: n for c, n in characters.items() if ord(c) in alone and not c.isspace()})
    continuing: Counter[str] = Counter()
    for word, count in words.items():
        initial[word[0]] += count
        for character in word[1:]:
            continuing[character] += count
    return _Pieces(initial, continuing)


def _stands_alone(character: str, pre_tokenizer: pre_tokenizers.PreTokenizer) -> bool:
    """Whether no word goes on through this character."""
    return len(pre_tokenizer.pre_tokenize_str(f"a{character}a")) > 1


def _alphabet(pieces: _Pieces, *, room: int) -> tuple[list[str], tuple[str, ...]]:
    """Pieces of one character in a fixed order, the most frequent ones when room is short.

    A character inside words needs its plain form too, from which the trainer knows it.
    """
    counts = pieces.initial + pieces.continuing
    ranked = sorted(counts, key=lambda c: (-counts[c], c))
    kept: list[str] = []
    for character in ranked:
        forms = [character, CONTINUING + character][: 1 + (character in pieces.continuing)]
        if len(kept) + len(forms) > room:
            break
        kept += forms
    left_out = len(ranked) - sum(not is_continuing(piece) for piece in kept)
    kept.sort(key=lambda piece: (is_continuing(piece), piece))
    if not left_out:
        return kept, ()
    return kept, (
        f"the text has {len(ranked)} different characters; the {left_out} rarest are unknown to "
        "the tokenizer: raise tokenizer.train.vocabSize to keep them",
    )


def is_continuing(piece: str) -> bool:
    """Whether a piece stands inside a word (a lone # is none)."""
    return len(piece) > len(CONTINUING) and piece.startswith(CONTINUING)
