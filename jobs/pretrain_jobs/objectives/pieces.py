"""Pieces: which tokens of which document stand in which row, and the rows put together from them.

A sample is a row of pieces. A piece is a part of one document, with a special token before it
(`prefix`), after it (`suffix`), both or neither. This module turns pieces into arrays; which
pieces a sample has is decided in `packing` and `best_fit`, what is predicted in `mlm` and `clm`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Bool = NDArray[np.bool_]


@dataclass(frozen=True)
class TokenShard:
    """A decoded shard: tokens uint16|uint32 [T], word_starts bool [T], document_offsets [D+1].

    Offsets rise strictly from 0 to T: documents without tokens are left out.
    """

    tokens: NDArray[Any]
    word_starts: Bool
    document_offsets: Int64


class ShardSource(Protocol):
    """Decoded shards by their index in the split's manifest."""

    def shard(self, index: int) -> TokenShard:
        """The shard, decoded; it is not to be changed."""


@dataclass(frozen=True)
class Pieces:
    """Parallel arrays [P], ordered by row, then by their place in the row.

    `start` counts tokens within the shard. `prefix` and `suffix` say whether a special token
    stands before and after the piece. A piece of length 0 has a prefix or a suffix.
    """

    row: Int64
    shard: Int64
    start: Int64
    length: Int64
    prefix: Bool
    suffix: Bool

    @property
    def width(self) -> Int64:
        """Positions that each piece takes, int64 [P]."""
        return self.length + self.prefix + self.suffix

    def columns(self) -> Int64:
        """The column at which each piece begins, int64 [P]."""
        ends = np.cumsum(self.width)
        before = ends - self.width
        first = np.searchsorted(self.row, self.row, side="left")
        return before - before[first]


@dataclass(frozen=True)
class Rows:
    """Rows put together, all [B, L]; padding stands at the end of a row.

    `content` marks tokens of the corpus (neither special nor padding); `word_starts` marks those
    that begin a word. `document_ids` counts a row's documents from 0; padding is -1.
    """

    input_ids: Int64
    content: Bool
    word_starts: Bool
    document_ids: Int64

    @property
    def real(self) -> Bool:
        """Positions that are not padding."""
        return self.document_ids >= 0

    def position_ids(self, *, isolated: bool) -> Int64:
        """Positions int64 [B, L] from 0, restarting at each document (and padding) if isolated."""
        batch, length = self.input_ids.shape
        positions = np.broadcast_to(np.arange(length), (batch, length))
        if not isolated:
            return positions.copy()
        restarts = np.zeros((batch, length), np.int64)
        restarts[:, 1:] = np.where(
            self.document_ids[:, 1:] != self.document_ids[:, :-1], positions[:, 1:], 0
        )
        return positions - np.maximum.accumulate(restarts, axis=1)


def assemble(
    pieces: Pieces,
    source: ShardSource,
    *,
    shape: tuple[int, int],
    prefix_id: int,
    suffix_id: int,
    pad_id: int,
) -> Rows:
    """Put rows of `shape` (B, L) together; the pieces of a row must fit into L positions."""
    size = shape[0] * shape[1]
    flat = pieces.row * shape[1] + pieces.columns()
    input_ids = np.full(size, pad_id, np.int64)
    content = np.zeros(size, np.bool_)
    word_starts = np.zeros(size, np.bool_)
    first = flat + pieces.prefix
    for index in np.unique(pieces.shard).tolist():
        shard = source.shard(index)
        of_shard = pieces.shard == index
        target = expand(first[of_shard], pieces.length[of_shard])
        origin = expand(pieces.start[of_shard], pieces.length[of_shard])
        input_ids[target] = shard.tokens[origin]
        word_starts[target] = shard.word_starts[origin]
        content[target] = True
    input_ids[flat[pieces.prefix]] = prefix_id
    input_ids[(first + pieces.length)[pieces.suffix]] = suffix_id
    return Rows(
        input_ids=input_ids.reshape(shape),
        content=content.reshape(shape),
        word_starts=word_starts.reshape(shape),
        document_ids=_document_ids(pieces, flat, size).reshape(shape),
    )


def _document_ids(pieces: Pieces, flat: Int64, size: int) -> Int64:
    document_ids = np.full(size, -1, np.int64)
    first = np.searchsorted(pieces.row, pieces.row, side="left")
    number = np.arange(len(first)) - first
    document_ids[expand(flat, pieces.width)] = np.repeat(number, pieces.width)
    return document_ids


def expand(starts: Int64, lengths: Int64) -> Int64:
    """All of starts[i], starts[i]+1, ..., starts[i]+lengths[i]-1 in turn, int64 [sum(lengths)]."""
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    return np.repeat(starts - (ends - lengths), lengths) + np.arange(total)
