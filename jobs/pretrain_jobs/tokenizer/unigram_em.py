"""Unigram language model over pieces, by expectation maximisation and pruning.

After Kudo 2018 (arXiv:1804.10959): every word is a sum over all its segmentations; pieces whose
loss would hurt the likelihood least are taken away until the vocabulary has its size. Pure array
work in a fixed order, since the library's own trainer sums in the order of a hash table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pretrain_jobs.tokenizer.unigram_seeds import Seeds, Words

ITERATIONS = 2
"""Rounds of expectation maximisation between two prunings."""

KEPT_SHARE = 0.75
"""Share of the pieces that one pruning keeps, unless fewer have to go."""

FEWEST_EXPECTED = 0.5
"""Expected occurrences below which a piece is dropped at once; characters are not."""

LOSS_DIGITS = 6
"""Digits of a loss that count, so that the last bits of a sum never decide a ranking."""


@dataclass(frozen=True)
class _Edges:
    """Occurrences of pieces in words: from place to place, [E] each.

    A place is before, between or after characters.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    piece: NDArray[np.int32]


@dataclass(frozen=True)
class _Lattice:
    """Places of all words in one row: word w has `lengths[w] + 1` of them from `first[w]` on."""

    first: NDArray[np.int64]
    lengths: NDArray[np.int64]
    depth: NDArray[np.int64]
    counts: NDArray[np.int64]


@dataclass(frozen=True)
class _Steps:
    """Edges in the order in which they are summed, cut into runs that can be summed at once."""

    order: NDArray[np.int64]
    runs: tuple[tuple[int, int, NDArray[np.int64], NDArray[np.int64]], ...]


def fit_unigram(
    words: Words, seeds: Seeds, *, size: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Prune the seeds to `size` pieces: their numbers int64 [K] and log probabilities [K].

    Sorted by falling probability, then by number. All characters stay, so K is never below their
    number.
    """
    lattice, edges = _build(words, seeds)
    required = seeds.lengths == 1
    alive = np.ones(len(required), dtype=np.bool_)
    scores = _log_shares(seeds.counts.astype(np.float64), alive)
    while True:
        for _ in range(ITERATIONS):
            expected = _expected_counts(lattice, edges, scores)
            alive &= required | (expected >= FEWEST_EXPECTED)
            scores = _log_shares(np.maximum(expected, FEWEST_EXPECTED), alive)
        if int(np.count_nonzero(alive)) <= max(size, int(np.count_nonzero(required))):
            break
        alive = _prune(seeds, scores, expected, alive, size=size)
        edges = _only(edges, alive)
        scores = _log_shares(np.maximum(expected, FEWEST_EXPECTED), alive)
    chosen = np.flatnonzero(alive)
    order = np.lexsort((chosen, -np.round(scores[chosen], LOSS_DIGITS)))
    return chosen[order], scores[chosen[order]]


def _build(words: Words, seeds: Seeds) -> tuple[_Lattice, _Edges]:
    lengths = np.diff(words.starts)
    word = words.word_of_character()
    place = np.arange(len(word)) + word
    starts, ends, pieces = [], [], []
    for k, pieces_at in enumerate(seeds.pieces_at, start=1):
        found = np.flatnonzero(pieces_at >= 0)
        starts.append(place[found])
        ends.append(place[found] + k)
        pieces.append(pieces_at[found])
    first = words.starts[:-1] + np.arange(len(lengths))
    depth = np.arange(lengths.sum() + len(lengths)) - np.repeat(first, lengths + 1)
    lattice = _Lattice(first=first, lengths=lengths, depth=depth, counts=words.counts)
    return lattice, _Edges(np.concatenate(starts), np.concatenate(ends), np.concatenate(pieces))


def _only(edges: _Edges, alive: NDArray[np.bool_]) -> _Edges:
    kept = alive[edges.piece]
    return _Edges(edges.start[kept], edges.end[kept], edges.piece[kept])


def _log_shares(counts: NDArray[np.float64], alive: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Log of each count's share; minus infinity for pieces that are gone."""
    kept = np.where(alive, counts, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(kept) - np.log(kept.sum()))


def _steps(lattice: _Lattice, nodes: NDArray[np.int64], *, backwards: bool) -> _Steps:
    """Group edges by the place they are summed into, places by their depth in the word."""
    depth = lattice.depth[nodes]
    order = np.lexsort((nodes, -depth if backwards else depth))
    sorted_nodes, sorted_depth = nodes[order], depth[order]
    cuts = np.flatnonzero(np.diff(sorted_depth)) + 1
    runs = []
    for begin, end in zip([0, *cuts], [*cuts, len(order)], strict=True):
        run = sorted_nodes[begin:end]
        segments = np.flatnonzero(np.diff(run, prepend=-1))
        runs.append((int(begin), int(end), segments, run[segments]))
    return _Steps(order=order, runs=tuple(runs))


def _expected_counts(
    lattice: _Lattice, edges: _Edges, scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Expected occurrences of each piece [P] over all segmentations of all words."""
    weights = scores[edges.piece]
    forward = _sum_paths(lattice, weights, into=edges.end, out_of=edges.start, backwards=False)
    backward = _sum_paths(lattice, weights, into=edges.start, out_of=edges.end, backwards=True)
    word = np.repeat(np.arange(len(lattice.counts)), lattice.lengths + 1)[edges.start]
    total = backward[lattice.first][word]
    posterior = np.exp(forward[edges.start] + weights + backward[edges.end] - total)
    shares = posterior * lattice.counts[word]
    return np.asarray(np.bincount(edges.piece, weights=shares, minlength=len(scores)), np.float64)


def _sum_paths(
    lattice: _Lattice,
    weights: NDArray[np.float64],
    *,
    into: NDArray[np.int64],
    out_of: NDArray[np.int64],
    backwards: bool,
) -> NDArray[np.float64]:
    """Log of the summed probability of all ways from a word's one end to each place."""
    ends = lattice.first + lattice.lengths if backwards else lattice.first
    totals = np.full(len(lattice.depth), -np.inf)
    totals[ends] = 0.0
    steps = _steps(lattice, into, backwards=backwards)
    sources, ordered = out_of[steps.order], weights[steps.order]
    for begin, end, segments, nodes in steps.runs:
        values = totals[sources[begin:end]] + ordered[begin:end]
        totals[nodes] = np.logaddexp.reduceat(values, segments)
    return totals


def _prune(
    seeds: Seeds,
    scores: NDArray[np.float64],
    expected: NDArray[np.float64],
    alive: NDArray[np.bool_],
    *,
    size: int,
) -> NDArray[np.bool_]:
    """Keep the pieces whose absence would cost most; characters always stay."""
    required = seeds.lengths == 1
    optional = np.flatnonzero(alive & ~required)
    room = max(size - int(np.count_nonzero(required)), 0)
    kept = max(room, int(KEPT_SHARE * len(optional)))
    loss = expected[optional] * (scores[optional] - _best_without(seeds, scores, optional))
    ranked = optional[np.lexsort((optional, -_rounded(loss)))]
    survivors: NDArray[np.bool_] = required & alive
    survivors[ranked[:kept]] = True
    return survivors


def _rounded(loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values [n] to LOSS_DIGITS significant digits."""
    with np.errstate(divide="ignore"):
        exponent = np.floor(np.log10(np.maximum(np.abs(loss), 1e-300)))
    scale = 10.0 ** (LOSS_DIGITS - 1 - exponent)
    return np.asarray(np.round(loss * scale) / scale)


def _best_without(
    seeds: Seeds, scores: NDArray[np.float64], pieces: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Log probability of each piece's text in its best segmentation into other pieces."""
    at, lengths = seeds.at[pieces], seeds.lengths[pieces]
    longest = int(lengths.max(initial=1))
    best = np.full((longest + 1, len(pieces)), -np.inf)
    best[0] = 0.0
    with_none = np.append(scores, -np.inf)
    for end in range(1, longest + 1):
        within = np.flatnonzero(lengths >= end)
        for start in range(max(0, end - len(seeds.pieces_at)), end):
            piece = seeds.pieces_at[end - start - 1][at[within] + start]
            value = best[start, within] + with_none[piece]
            value[(lengths[within] == end) & (start == 0)] = -np.inf
            best[end, within] = np.maximum(best[end, within], value)
    return best[lengths, np.arange(len(pieces))]
