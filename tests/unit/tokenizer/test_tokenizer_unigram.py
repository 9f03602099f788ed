"""The Unigram trainer's arrays against plain definitions over small words."""

import itertools
import math
from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.tokenizer import unigram_em
from pretrain_jobs.tokenizer.unigram_seeds import Words, find_seeds

words_with_counts = st.dictionaries(
    st.text("abc", min_size=1, max_size=6), st.integers(1, 5), min_size=1, max_size=12
)


def substrings(counted: dict[str, int], longest: int) -> Counter[str]:
    found: Counter[str] = Counter()
    for word, count in counted.items():
        for start, end in itertools.combinations(range(len(word) + 1), 2):
            if end - start <= longest:
                found[word[start:end]] += count
    return found


def segmentations(word: str, pieces: dict[str, float]) -> list[tuple[str, ...]]:
    if not word:
        return [()]
    return [
        (word[:end], *rest)
        for end in range(1, len(word) + 1)
        if word[:end] in pieces
        for rest in segmentations(word[end:], pieces)
    ]


def seeds_by_text(words: Words, seeds) -> dict[str, int]:
    return {
        words.text(int(at), int(length)): int(count)
        for at, length, count in zip(seeds.at, seeds.lengths, seeds.counts, strict=True)
    }


@given(words_with_counts, st.integers(1, 5))
def test_seeds_are_the_frequent_substrings_with_their_counts(counted, longest):
    words = Words.from_counts(sorted(counted.items()))
    every = substrings(counted, longest)

    seeds = seeds_by_text(words, find_seeds(words, longest=longest, most=10_000))

    assert all(every[text] == count for text, count in seeds.items())
    assert {text for text in every if len(text) == 1} <= seeds.keys()
    for text, count in every.items():
        hidden = any(
            every[longer] == count
            for longer in every
            if len(longer) == len(text) + 1 and text in (longer[1:], longer[:-1])
        )
        assert (text in seeds) == (len(text) == 1 or (count >= 2 and not hidden))


@given(words_with_counts)
def test_expected_counts_are_those_over_all_segmentations(counted):
    words = Words.from_counts(sorted(counted.items()))
    seeds = find_seeds(words, longest=4, most=10_000)
    texts = list(seeds_by_text(words, seeds))
    shares = np.arange(1, len(texts) + 1) / sum(range(1, len(texts) + 1))
    pieces = dict(zip(texts, shares.tolist(), strict=True))

    lattice, edges = unigram_em._build(words, seeds)
    expected = unigram_em._expected_counts(lattice, edges, np.log(shares))

    plain: Counter[str] = Counter()
    for word, count in counted.items():
        ways = segmentations(word, pieces)
        weights = [math.prod(pieces[piece] for piece in way) for way in ways]
        for way, weight in zip(ways, weights, strict=True):
            for piece in way:
                plain[piece] += count * weight / sum(weights)
    np.testing.assert_allclose(expected, [plain[text] for text in texts], atol=1e-9)


@given(words_with_counts)
def test_the_best_other_segmentation_is_the_best_of_all_others(counted):
    words = Words.from_counts(sorted(counted.items()))
    seeds = find_seeds(words, longest=4, most=10_000)
    texts = list(seeds_by_text(words, seeds))
    scores = -np.arange(1.0, len(texts) + 1)
    pieces = dict(zip(texts, scores.tolist(), strict=True))

    found = unigram_em._best_without(seeds, scores, np.arange(len(texts)))

    for text, best in zip(texts, found.tolist(), strict=True):
        others = [way for way in segmentations(text, pieces) if way != (text,)]
        sums = [sum(pieces[piece] for piece in way) for way in others]
        assert best == max(sums, default=-math.inf)


@given(words_with_counts, st.integers(0, 12))
def test_fitting_keeps_every_character_and_no_more_pieces_than_asked_for(counted, size):
    words = Words.from_counts(sorted(counted.items()))
    seeds = find_seeds(words, longest=4, most=10_000)
    characters = {character for word in counted for character in word}

    chosen, scores = unigram_em.fit_unigram(words, seeds, size=size)

    texts = [words.text(int(seeds.at[piece]), int(seeds.lengths[piece])) for piece in chosen]
    assert characters <= set(texts)
    assert len(texts) <= max(size, len(characters))
    assert np.isclose(np.exp(scores).sum(), 1.0)
    assert (np.diff(scores) <= 1e-6).all()
