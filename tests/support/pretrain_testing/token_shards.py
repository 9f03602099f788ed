"""Shards in memory for tests of packing and objectives: every token's id tells its place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from pretrain_jobs.objectives.packing import ShardLayout
from pretrain_jobs.objectives.pieces import TokenShard

FIRST_TOKEN = 100
"""Token n of a corpus (over all shards) has the id FIRST_TOKEN + n."""

Documents = Sequence[Sequence[int]]
"""The lengths of each document's sentences, in tokens."""


@dataclass(frozen=True)
class MemoryShards:
    """Shards of one split."""

    shards: tuple[TokenShard, ...]
    layouts: tuple[ShardLayout, ...]

    def shard(self, index: int) -> TokenShard:
        return self.shards[index]

    @property
    def tokens(self) -> int:
        return sum(layout.tokens for layout in self.layouts)

    @property
    def documents(self) -> int:
        return sum(layout.documents for layout in self.layouts)

    def document_numbers(self) -> np.ndarray:
        """For each token of the corpus, the number of its document."""
        lengths = [np.diff(layout.document_offsets) for layout in self.layouts]
        joined = np.concatenate(lengths)
        return np.repeat(np.arange(len(joined)), joined)


def memory_shards(*shards: Documents, word_length: int = 1) -> MemoryShards:
    """Shards whose documents have sentences of the given lengths, and words of `word_length`."""
    built: list[TokenShard] = []
    layouts: list[ShardLayout] = []
    first = FIRST_TOKEN
    for documents in shards:
        sentences = [length for document in documents for length in document]
        document_lengths = [sum(document) for document in documents]
        layout = ShardLayout.of(_offsets(document_lengths), _offsets(sentences))
        tokens = np.arange(first, first + layout.tokens, dtype=np.uint32)
        starts = np.concatenate(
            [np.arange(length) % word_length == 0 for length in document_lengths]
            or [np.empty(0, np.bool_)]
        )
        built.append(TokenShard(tokens, starts.astype(np.bool_), layout.document_offsets))
        layouts.append(layout)
        first += layout.tokens
    return MemoryShards(tuple(built), tuple(layouts))


def _offsets(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]).astype(np.int64)
