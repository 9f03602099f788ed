"""Packing that reads the corpus as one stream: `fullSentences` and `blocks`.

The stream is the concatenation of all shards of a split in the manifest's order, with one
separator after each document. A table of samples is computed from offsets alone and holds eight
bytes a sample at most; any sample can then be looked up by its id. Whole documents, fitted into
samples, are in `best_fit`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pretrain_jobs.objectives.pieces import Bool, Int64, Pieces, ShardSource, expand


@dataclass(frozen=True)
class ShardLayout:
    """A shard's offsets int64 [D+1] and [S+1], both strictly rising from 0 to its tokens.

    Every document's offset is a sentence's, too.
    """

    document_offsets: Int64
    sentence_offsets: Int64

    @classmethod
    def of(cls, document_offsets: Int64, sentence_offsets: Int64) -> ShardLayout:
        """A layout without the empty documents and sentences of the given offsets."""
        return cls(distinct(document_offsets), distinct(sentence_offsets))

    @property
    def tokens(self) -> int:
        """Tokens of the shard."""
        return int(self.document_offsets[-1])

    @property
    def documents(self) -> int:
        """Documents of the shard that have tokens."""
        return len(self.document_offsets) - 1


def distinct(offsets: Int64) -> Int64:
    """Offsets without the repetitions that empty documents or sentences leave."""
    keep = np.ones(len(offsets), np.bool_)
    keep[1:] = offsets[1:] != offsets[:-1]
    return offsets[keep].astype(np.int64)


class SampleTable(Protocol):
    """The samples of a split, numbered from 0, those of a shard one after another."""

    @property
    def shard_samples(self) -> tuple[int, ...]:
        """How many samples begin in each shard."""

    @property
    def dropped_labels(self) -> int:
        """Labels that no sample has because the last block would be partial."""

    def pieces(self, sample_ids: Int64, source: ShardSource) -> Pieces:
        """The pieces of the samples int64 [B]; row i of the result is sample_ids[i]."""


@dataclass(frozen=True)
class SentenceTable:
    """`fullSentences`: sample i holds the corpus's tokens [boundaries[i], boundaries[i+1]).

    `boundaries` int64 [N+1] and `shard_starts` int64 [S+1] count tokens over all shards.
    """

    boundaries: Int64
    shard_starts: Int64
    dropped_labels: int = 0

    @property
    def shard_samples(self) -> tuple[int, ...]:
        """How many samples begin in each shard."""
        begun = np.searchsorted(self.boundaries[:-1], self.shard_starts, side="left")
        return tuple(np.diff(begun).tolist())

    def pieces(self, sample_ids: Int64, source: ShardSource) -> Pieces:
        """One piece per document: a prefix before a sample's first, a suffix after each."""
        row, shard, start, stop = _split_by_shard(
            self.boundaries[sample_ids], self.boundaries[sample_ids + 1], self.shard_starts
        )
        piece, low, high, _ = _split_by_document(shard, start, stop, source, separators=False)
        piece_row = row[piece]
        prefix = np.ones(len(piece), np.bool_)
        prefix[1:] = piece_row[1:] != piece_row[:-1]
        suffix = np.ones(len(piece), np.bool_)
        return Pieces(piece_row, shard[piece], low, high - low, prefix, suffix)


@dataclass(frozen=True)
class BlockTable:
    """`blocks`: sample i holds the stream's positions [i*L, i*L + L], one more than it reads.

    The last position is the label of the one before. `stream_starts` int64 [S+1] counts tokens
    and separators over all shards.
    """

    length: int
    count: int
    stream_starts: Int64

    @property
    def shard_samples(self) -> tuple[int, ...]:
        """How many samples begin in each shard."""
        begun = np.minimum(-(-self.stream_starts // self.length), self.count)
        return tuple(np.diff(begun).tolist())

    @property
    def dropped_labels(self) -> int:
        """Labels after the last whole block."""
        return max(int(self.stream_starts[-1]) - 1, 0) - self.count * self.length

    def pieces(self, sample_ids: Int64, source: ShardSource) -> Pieces:
        """One piece per document, L + 1 positions a row; a suffix where a document ends."""
        start = sample_ids * self.length
        row, shard, low, high = _split_by_shard(start, start + self.length + 1, self.stream_starts)
        piece, first, last, suffix = _split_by_document(shard, low, high, source, separators=True)
        none = np.zeros(len(piece), np.bool_)
        return Pieces(row[piece], shard[piece], first, last - first, none, suffix)


def block_table(layouts: Iterable[ShardLayout], length: int) -> BlockTable:
    """Blocks of `length` positions: floor((stream - 1) / length) of them."""
    sizes = [layout.tokens + layout.documents for layout in layouts]
    stream_starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
    count = max(int(stream_starts[-1]) - 1, 0) // length
    return BlockTable(length, count, stream_starts)


def sentence_table(layouts: Iterable[ShardLayout], capacity: int) -> SentenceTable:
    """Samples of at most `capacity` positions, the separators between documents included.

    A sample ends at a sentence's end when that leaves at most 1% of the positions (or one)
    empty; otherwise the next sentence is cut, its rest begins the next sample, and the sample is
    full. So nothing is lost and every sample but the last is at least 99% full.
    """
    packer = _SentencePacker(capacity)
    shard_starts = [0]
    for layout in layouts:
        packer.add(layout)
        shard_starts.append(packer.tokens)
    return SentenceTable(packer.finish(), np.array(shard_starts, np.int64))


class _SentencePacker:
    """Cuts the stream shard by shard; positions count tokens and separators so far."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._slack = max(1, capacity // 100)
        self._boundaries = array("q", [0])
        self._start = 0
        self._last_end = 0
        self._documents = 0
        self.tokens = 0

    def add(self, layout: ShardLayout) -> None:
        """Cut all samples that end before the shard's last token."""
        if not layout.tokens:
            return
        token_ends = layout.sentence_offsets[1:]
        document = np.searchsorted(layout.document_offsets, token_ends, side="left") - 1
        offset = self.tokens + self._documents
        ends: list[int] = (token_ends + document + offset).tolist()
        closes_document = token_ends == layout.document_offsets[document + 1]
        index = 0
        while (target := self._start + self._capacity) < ends[-1]:
            index = bisect_right(ends, target, index)
            end = ends[index - 1] if index else self._last_end
            if end > self._start and target - end <= self._slack:
                closed = bool(closes_document[index - 1]) if index else True
                separators = int(document[index - 1]) if index else -1
                self._cut(end, separators, closed=closed)
            else:
                self._cut(target, int(document[index]), closed=False)
        self.tokens += layout.tokens
        self._documents += layout.documents
        self._last_end = ends[-1]
        if target == ends[-1]:
            self._boundaries.append(self.tokens)
            self._start = ends[-1] + 1

    def _cut(self, position: int, separators: int, *, closed: bool) -> None:
        """End a sample; `separators` of this shard lie before it, `closed` skips the next."""
        self._boundaries.append(position - self._documents - separators)
        self._start = position + closed

    def finish(self) -> Int64:
        """All boundaries; the last sample may be partial."""
        if self._boundaries[-1] < self.tokens:
            self._boundaries.append(self.tokens)
        return np.array(self._boundaries, np.int64)


def _split_by_shard(start: Int64, stop: Int64, bounds: Int64) -> tuple[Int64, Int64, Int64, Int64]:
    """Cut ranges [start, stop) at shard borders: row, shard and local start and stop of each."""
    first = np.searchsorted(bounds, start, side="right") - 1
    last = np.searchsorted(bounds, stop, side="left") - 1
    row = np.repeat(np.arange(len(start)), last - first + 1)
    shard = expand(first, last - first + 1)
    low = np.maximum(start[row], bounds[shard]) - bounds[shard]
    high = np.minimum(stop[row], bounds[shard + 1]) - bounds[shard]
    keep = high > low
    return row[keep], shard[keep], low[keep], high[keep]


def _split_by_document(
    shard: Int64, start: Int64, stop: Int64, source: ShardSource, *, separators: bool
) -> tuple[Int64, Int64, Int64, Bool]:
    """Cut ranges at documents: range number, token start and stop, and whether a separator ends it.

    With `separators` the ranges count the separator after each document as a position.
    """
    none = np.empty(0, np.int64)
    parts = [(none, none, none, none.astype(np.bool_))]
    for index in np.unique(shard).tolist():
        offsets = source.shard(index).document_offsets
        number = np.flatnonzero(shard == index)
        bounds = offsets + np.arange(len(offsets)) if separators else offsets
        parts.append(_split_in_shard(number, start[number], stop[number], offsets, bounds))
    number, low, high, suffix = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(number, kind="stable")
    return number[order], low[order], high[order], suffix[order]


def _split_in_shard(
    number: Int64, start: Int64, stop: Int64, offsets: Int64, bounds: Int64
) -> tuple[Int64, Int64, Int64, Bool]:
    first = np.searchsorted(bounds, start, side="right") - 1
    count = np.searchsorted(bounds, stop, side="left") - first
    document = expand(first, count)
    origin = np.repeat(np.arange(len(start)), count)
    low = offsets[document] + np.maximum(start[origin] - bounds[document], 0)
    high = np.minimum(offsets[document] + stop[origin] - bounds[document], offsets[document + 1])
    suffix = stop[origin] - bounds[document] > offsets[document + 1] - offsets[document]
    return number[origin], low, high, suffix
