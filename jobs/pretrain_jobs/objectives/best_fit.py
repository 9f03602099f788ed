"""Packing of whole documents: `documents`, best fit decreasing, shard by shard.

Every document keeps its own special tokens. Only a document longer than a sample is cut, into
full samples and a rest. Pieces are taken by falling length; each goes into the fullest sample
that has room for it, the oldest of several, else into a new one (Johnson, "Near-optimal bin
packing algorithms", 1973). So the table is a function of the offsets alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from pretrain_jobs.objectives.packing import ShardLayout
from pretrain_jobs.objectives.pieces import Bool, Int64, Pieces, ShardSource, expand


@dataclass(frozen=True)
class DocumentSpace:
    """What a sample of `length` positions offers to documents.

    With `both_ends` a piece has a special token before and after it; without, only a document's
    last piece has one after it.
    """

    length: int
    both_ends: bool

    @property
    def largest_piece(self) -> int:
        """Tokens of the longest piece."""
        return self.length - 2 if self.both_ends else self.length


@dataclass(frozen=True)
class DocumentTable:
    """Sample i has the pieces [sample_offsets[i], sample_offsets[i+1]) of the arrays [P].

    `piece_start` counts tokens in the shard; `suffix` marks pieces with a special token after.
    """

    shard_samples: tuple[int, ...]
    sample_offsets: Int64
    piece_start: Int64
    piece_length: Int64
    suffix: Bool
    both_ends: bool
    dropped_labels: int = 0

    def pieces(self, sample_ids: Int64, source: ShardSource) -> Pieces:  # noqa: ARG002
        """The pieces of the samples int64 [B], in the order in which they were fitted."""
        first = self.sample_offsets[sample_ids]
        count = self.sample_offsets[sample_ids + 1] - first
        chosen = expand(first, count)
        row = np.repeat(np.arange(len(sample_ids)), count)
        last_ids = np.cumsum(self.shard_samples)
        return Pieces(
            row=row,
            shard=np.searchsorted(last_ids, sample_ids, side="right")[row],
            start=self.piece_start[chosen],
            length=self.piece_length[chosen],
            prefix=np.full(len(chosen), self.both_ends),
            suffix=self.suffix[chosen],
        )


def document_table(layouts: Iterable[ShardLayout], space: DocumentSpace) -> DocumentTable:
    """Fit the documents of each shard into samples."""
    tables = [_fit_shard(layout, space) for layout in layouts]
    none = np.empty(0, np.int64)
    columns = zip((none, none, none, none), *tables, strict=True)
    counts, start, length, suffix = (np.concatenate(column) for column in columns)
    return DocumentTable(
        shard_samples=tuple(len(table[0]) for table in tables),
        sample_offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        piece_start=start,
        piece_length=length,
        suffix=suffix.astype(np.bool_),
        both_ends=space.both_ends,
    )


def _fit_shard(layout: ShardLayout, space: DocumentSpace) -> tuple[Int64, Int64, Int64, Int64]:
    """Pieces of each sample, then start, length and suffix of each piece in sample order."""
    start, length, suffix = _cut_documents(layout.document_offsets, space)
    cost = length + suffix + int(space.both_ends)
    falling = np.argsort(-cost, kind="stable")
    samples = np.array(best_fit(cost[falling].tolist(), space.length), np.int64)
    order = falling[np.argsort(samples, kind="stable")]
    return np.bincount(samples).astype(np.int64), start[order], length[order], suffix[order]


def _cut_documents(offsets: Int64, space: DocumentSpace) -> tuple[Int64, Int64, Int64]:
    """Start, length and suffix (0 or 1) of every piece, in the corpus's order."""
    size = np.diff(offsets)
    count = -(-size // space.largest_piece)
    document = np.repeat(np.arange(len(size)), count)
    number = expand(np.zeros(len(size), np.int64), count)
    start = offsets[document] + number * space.largest_piece
    length = np.minimum(offsets[document + 1] - start, space.largest_piece)
    suffix = np.ones(len(start), np.int64)
    if not space.both_ends:
        suffix = ((number == count[document] - 1) & (length < space.length)).astype(np.int64)
    return start, length, suffix


def best_fit(costs: list[int], room: int) -> list[int]:
    """The sample that each cost goes into, costs being taken in turn; none may exceed `room`.

    Samples with the same room left wait in a queue; a bit of `available` says which queues have
    any, so that the smallest sufficient one is found by one shift. A sample that takes a cost and
    still has room for another equal one stays the fullest, so it takes all that fit at once.
    """
    waiting: list[deque[int]] = [deque() for _ in range(room + 1)]
    available = 0
    samples = 0
    chosen: list[int] = []
    for cost, equal in groupby(costs):
        count = sum(1 for _ in equal)
        while count:
            sufficient = available >> cost
            if sufficient:
                left = cost + (sufficient & -sufficient).bit_length() - 1
                sample = waiting[left].popleft()
                available ^= 0 if waiting[left] else 1 << left
            else:
                left, sample = room, samples
                samples += 1
            taken = min(left // cost, count)
            chosen += [sample] * taken
            count -= taken
            left -= taken * cost
            if left:
                waiting[left].append(sample)
                available |= 1 << left
    return chosen
