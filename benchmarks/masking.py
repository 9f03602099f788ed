"""Speed of forming samples: masking of whole words, packing tables and whole batches.

Figures are CPU time of one thread on made-up tokens shaped like Chinese text (words of 1.6 tokens,
sentences of 25, documents of 500); the best of a few repetitions, the first being warm-up.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pretrain_api.spec.objective import MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PackingSpec
from pretrain_jobs.dataset.counter_random import fold
from pretrain_jobs.objectives.best_fit import DocumentSpace, document_table
from pretrain_jobs.objectives.mlm import MaskingRule, mask_tokens
from pretrain_jobs.objectives.packing import ShardLayout, block_table, sentence_table
from pretrain_jobs.objectives.pieces import Int64, TokenShard
from pretrain_jobs.objectives.select import build_objective, mask_vocabulary
from pretrain_jobs.tokenizer.special import SpecialTokens

VOCABULARY = 21_128
LENGTH = 512
TOKENS = 10_000_000
BERT = SpecialTokens(
    length=VOCABULARY, pad=0, unk=1, cls=2, sep=3, mask=4, special=frozenset(range(5))
)


class _OneShard:
    """A corpus of one shard in memory."""

    def __init__(self, layout: ShardLayout, generator: np.random.Generator) -> None:
        tokens = generator.integers(5, VOCABULARY, layout.tokens).astype(np.uint16)
        words = generator.random(layout.tokens) < 1 / 1.6
        self._shard = TokenShard(tokens, words, layout.document_offsets)

    def shard(self, index: int) -> TokenShard:  # noqa: ARG002
        return self._shard


def measure_masking() -> dict[str, Any]:
    """Millions of tokens masked and formed a second, and seconds for tables of 10 M tokens."""
    generator = np.random.default_rng(1)
    layout = _layout(generator)
    room = DocumentSpace(LENGTH, both_ends=True)
    return {
        "million_tokens_per_second": _masking_rate(generator),
        "formed_million_tokens_per_second": _forming_rate(layout, generator),
        "full_sentences_table_seconds": _seconds(lambda: sentence_table([layout], LENGTH - 2), 3),
        "documents_table_seconds": _seconds(lambda: document_table([layout], room), 3),
        "blocks_table_seconds": _seconds(lambda: block_table([layout], LENGTH), 3),
    }


def _masking_rate(generator: np.random.Generator) -> float:
    """Masking alone of 2,048 samples: 1,048,576 tokens."""
    shape = (2048, LENGTH)
    input_ids = generator.integers(5, VOCABULARY, shape)
    content = np.ones(shape, np.bool_)
    content[:, [0, -1]] = False
    word_starts = generator.random(shape) < 1 / 1.6
    seconds = _seconds(
        lambda: mask_tokens(
            input_ids,
            content=content,
            word_starts=word_starts,
            real=np.full(shape[0], LENGTH),
            keys=fold(1, 0, np.arange(shape[0])),
            rule=MaskingRule(),
            vocabulary=mask_vocabulary(BERT),
        ),
        8,
    )
    return float(input_ids.size / seconds / 1e6)


def _forming_rate(layout: ShardLayout, generator: np.random.Generator) -> float:
    """Looking up, putting together and masking batches of 256 samples in random order."""
    objective = build_objective(
        ObjectiveSpec(mlm=MlmSpec()), PackingSpec(), tokens=BERT, sequence_length=LENGTH
    )
    table = objective.table([layout])
    source = _OneShard(layout, generator)
    ids: Int64 = generator.permutation(sum(table.shard_samples))[:256]
    epochs = np.zeros(len(ids), np.int64)
    seconds = _seconds(lambda: objective.form(table, source, ids, epochs=epochs, seed=1), 20)
    return float(ids.size * LENGTH / seconds / 1e6)


def _layout(generator: np.random.Generator) -> ShardLayout:
    """Sentences of 1 to 49 tokens, documents of 1 to 39 sentences."""
    ends = np.cumsum(generator.integers(1, 50, TOKENS // 25))
    sentence_offsets = np.concatenate([[0], ends])
    last = np.cumsum(generator.integers(1, 40, TOKENS // 25 // 20))
    last = last[last < len(ends)]
    document_offsets = np.concatenate([[0], sentence_offsets[last], [sentence_offsets[-1]]])
    return ShardLayout.of(document_offsets, sentence_offsets)


def _seconds(measured: Callable[[], object], repetitions: int) -> float:
    """CPU seconds of the fastest repetition."""
    best = float("inf")
    for _ in range(repetitions):
        started = time.process_time()
        measured()
        best = min(best, time.process_time() - started)
    return best
