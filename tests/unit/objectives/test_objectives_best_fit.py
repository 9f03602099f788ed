"""Packing of whole documents: fitted best first, cut only when longer than a sample."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.objectives.best_fit import DocumentSpace, best_fit, document_table
from pretrain_jobs.objectives.pieces import Rows, assemble
from pretrain_testing.token_shards import FIRST_TOKEN, MemoryShards, memory_shards

corpora = st.lists(st.lists(st.integers(1, 60), max_size=12), min_size=1, max_size=3).map(
    lambda shards: memory_shards(*[[[length] for length in lengths] for lengths in shards])
)


def rows_of(corpus: MemoryShards, space: DocumentSpace) -> Rows:
    table = document_table(corpus.layouts, space)
    ids = np.arange(sum(table.shard_samples))
    return assemble(
        table.pieces(ids, corpus),
        corpus,
        shape=(len(ids), space.length),
        prefix_id=1,
        suffix_id=2,
        pad_id=0,
    )


def test_500_300_200_and_12_positions_fill_two_samples_of_512():
    assert best_fit([500, 300, 200, 12], 512) == [0, 1, 1, 0]


@given(costs=st.lists(st.integers(1, 50), max_size=60))
def test_each_piece_goes_into_the_fullest_sample_that_has_room(costs):
    left: list[int] = []

    for cost, sample in zip(costs, best_fit(costs, 50), strict=True):
        rooms = [room for room in left if room >= cost]
        if sample == len(left):
            assert not rooms
            left.append(50)
        else:
            assert left[sample] == min(rooms)
        left[sample] -= cost


@pytest.mark.parametrize("both_ends", [True, False])
@given(corpus=corpora)
def test_every_token_is_in_one_sample_and_documents_are_cut_only_if_too_long(both_ends, corpus):
    rows = rows_of(corpus, DocumentSpace(20, both_ends=both_ends))
    room = 18 if both_ends else 20
    lengths = np.bincount(corpus.document_numbers())
    whole = lengths + 1 - both_ends <= room

    tokens = rows.input_ids[rows.content] - FIRST_TOKEN
    row_of_token = np.nonzero(rows.content)[0][np.argsort(tokens)]

    assert sorted(tokens.tolist()) == list(range(corpus.tokens))
    for number in np.flatnonzero(whole):
        assert len(set(row_of_token[corpus.document_numbers() == number].tolist())) == 1


@given(corpus=corpora)
def test_a_document_keeps_its_own_special_tokens(corpus):
    rows = rows_of(corpus, DocumentSpace(20, both_ends=True))

    for ids, documents in zip(rows.input_ids, rows.document_ids, strict=True):
        for number in range(documents.max() + 1):
            piece = ids[documents == number].tolist()
            assert (piece[0], piece[-1]) == (1, 2)
            assert min(piece[1:-1]) >= FIRST_TOKEN


@given(corpus=corpora)
def test_the_end_of_a_document_stands_once_unless_the_document_fills_its_sample(corpus):
    rows = rows_of(corpus, DocumentSpace(20, both_ends=False))
    lengths = np.bincount(corpus.document_numbers()) if corpus.tokens else np.empty(0, np.int64)

    assert np.count_nonzero(rows.input_ids == 2) == np.count_nonzero(lengths % 20)


def test_samples_do_not_mix_shards():
    corpus = memory_shards([[3], [4]], [[5]])

    table = document_table(corpus.layouts, DocumentSpace(32, both_ends=True))

    assert table.shard_samples == (1, 1)
