"""The end of a document stands once after each document that has text, and after nothing else."""

import numpy as np
import pytest
from pretrain_api.spec.objective import ClmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PackingSpec
from pretrain_jobs.objectives.batch import IGNORED
from pretrain_jobs.objectives.select import build_objective
from pretrain_jobs.tokenizer.special import SpecialTokens
from pretrain_testing.token_shards import MemoryShards, memory_shards

END = 0
GPT = SpecialTokens(
    length=5000, pad=END, bos=END, eos=END, end_of_document=END, special=frozenset({END})
)
"""As GPT-2 has it: the end of a text is also what rows are filled up with."""


def rows_of(corpus: MemoryShards, strategy: str, length: int) -> tuple[list[int], list[int]]:
    """Inputs that are no padding, and labels, of all samples in turn."""
    built = build_objective(
        ObjectiveSpec(clm=ClmSpec()),
        PackingSpec(strategy=strategy),
        tokens=GPT,
        sequence_length=length,
    )
    table = built.table(corpus.layouts)
    ids = np.arange(sum(table.shard_samples))
    batch = built.form(table, corpus, ids, epochs=np.zeros(len(ids), np.int64), seed=1)
    labels = batch.labels[batch.labels != IGNORED]
    return batch.input_ids[batch.document_ids >= 0].tolist(), labels.tolist()


@pytest.mark.parametrize("strategy", ["blocks", "documents"])
def test_an_empty_document_has_no_end_of_its_own(strategy):
    with_empty = memory_shards([[], [5], [], [], [6]], [[], [4], []])
    without = memory_shards([[5], [6]], [[4]])

    assert rows_of(with_empty, strategy, 9) == rows_of(without, strategy, 9)


@pytest.mark.parametrize("length", [6, 7, 8, 30])
def test_each_end_is_a_label_once_though_padding_is_the_same_token(length):
    corpus = memory_shards([[7], [3], [14], [1]])

    inputs, labels = rows_of(corpus, "documents", length)

    assert labels.count(END) == corpus.documents
    assert len(labels) == corpus.tokens
    assert inputs.count(END) <= corpus.documents
