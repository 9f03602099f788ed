"""Unigram in the manner of SentencePiece: spaces become ▁, Han text and other words lie apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

from pretrain_jobs.tokenizer.families import Family
from pretrain_jobs.tokenizer.unigram_em import fit_unigram
from pretrain_jobs.tokenizer.unigram_seeds import Words, find_seeds

MAX_WORD_CHARACTERS = 64
"""Longer words are trained on in parts of this length."""

MAX_CHARACTERS = 1_000_000
"""Characters of distinct words that are trained on; of more, an even share is taken."""

SEEDS_PER_TOKEN = 10
SCORE_DIGITS = 6
_HAN = Regex(r"▁?\p{Han}+")


def train_unigram(
    texts: Sequence[str], spec: TokenizerTrainingSpec, *, family: Family
) -> tuple[Tokenizer, tuple[str, ...]]:
    """Train, and say what was left out: the rarest characters when they are too many."""
    normalizer = _normalizer(lowercase=spec.lowercase)
    pre_tokenizer = _pre_tokenizer()
    counted = _count_words(texts, normalizer, pre_tokenizer)
    room = spec.vocab_size - len(family.specials)
    known, warnings = _known_characters(counted, room=room)
    words = _even_share(_spelled(counted, known))
    pieces = _pieces(words, size=room, spec=spec)
    vocabulary = [(token, 0.0) for token in family.specials] + pieces
    unknown = family.specials.index(str(family.unknown))
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=unknown))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer, warnings


def _normalizer(*, lowercase: bool) -> normalizers.Normalizer:
    """Compatibility forms fold; a run of any white space is one space."""
    steps = [normalizers.NFKC(), normalizers.Replace(Regex(r"\s+"), " ")]
    return normalizers.Sequence([*steps, normalizers.Lowercase()] if lowercase else steps)


def _pre_tokenizer() -> pre_tokenizers.PreTokenizer:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(prepend_scheme="always"),
            pre_tokenizers.Punctuation(),
            pre_tokenizers.Split(_HAN, behavior="isolated"),
        ]
    )


def _count_words(
    texts: Iterable[str],
    normalizer: normalizers.Normalizer,
    pre_tokenizer: pre_tokenizers.PreTokenizer,
) -> Counter[str]:
    words: Counter[str] = Counter()
    for text in texts:
        pieces = pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(text))
        words.update(word for word, _ in pieces)
    return words


def _known_characters(words: Counter[str], *, room: int) -> tuple[frozenset[str], tuple[str, ...]]:
    counts: Counter[str] = Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    ranked = sorted(counts, key=lambda c: (-counts[c], c))
    known = frozenset(ranked[:room])
    if len(ranked) <= room:
        return known, ()
    return known, (
        f"the text has {len(ranked)} different characters; the {len(ranked) - room} rarest are "
        "unknown to the tokenizer: raise tokenizer.train.vocabSize to keep them",
    )


def _spelled(words: Counter[str], known: frozenset[str]) -> list[tuple[str, int]]:
    """Words in order, cut at unknown characters and at the greatest length."""
    parts: Counter[str] = Counter()
    for word, count in words.items():
        kept = "".join(c if c in known else " " for c in word)
        for part in kept.split(" "):
            for begin in range(0, len(part), MAX_WORD_CHARACTERS):
                parts[part[begin : begin + MAX_WORD_CHARACTERS]] += count
    return sorted(parts.items())


def _even_share(words: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Every n-th word, so that the characters do not exceed MAX_CHARACTERS by much."""
    step = -(-sum(len(word) for word, _ in words) // MAX_CHARACTERS)
    return words[:: max(step, 1)]


def _pieces(
    counted: list[tuple[str, int]], *, size: int, spec: TokenizerTrainingSpec
) -> list[tuple[str, float]]:
    """Pieces with their scores, most probable first."""
    words = Words.from_counts(counted)
    longest = min(spec.max_piece_length, MAX_WORD_CHARACTERS)
    seeds = find_seeds(words, longest=longest, most=SEEDS_PER_TOKEN * spec.vocab_size)
    chosen, scores = fit_unigram(words, seeds, size=size)
    return [
        (words.text(int(seeds.at[piece]), int(seeds.lengths[piece])), round(score, SCORE_DIGITS))
        for piece, score in zip(chosen, scores.tolist(), strict=True)
    ]
