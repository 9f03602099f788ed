"""Packing of the corpus as one stream: nothing lost, samples full, any sample found by its id."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.objectives.packing import SampleTable, block_table, sentence_table
from pretrain_jobs.objectives.pieces import Rows, assemble
from pretrain_testing.token_shards import FIRST_TOKEN, MemoryShards, memory_shards

CLS, SEP, PAD, EOD = 1, 2, 0, 3

sentences = st.lists(st.integers(1, 30), min_size=1, max_size=5)
corpora = st.lists(st.lists(sentences, max_size=6), min_size=1, max_size=4).map(
    lambda shards: memory_shards(*shards)
)


def sentence_rows(corpus: MemoryShards, table: SampleTable, length: int) -> Rows:
    ids = np.arange(sum(table.shard_samples))
    return assemble(
        table.pieces(ids, corpus),
        corpus,
        shape=(len(ids), length),
        prefix_id=CLS,
        suffix_id=SEP,
        pad_id=PAD,
    )


def block_rows(corpus: MemoryShards, table: SampleTable, length: int) -> Rows:
    ids = np.arange(sum(table.shard_samples))
    return assemble(
        table.pieces(ids, corpus),
        corpus,
        shape=(len(ids), length + 1),
        prefix_id=EOD,
        suffix_id=EOD,
        pad_id=PAD,
    )


def stream_of(corpus: MemoryShards) -> list[int]:
    stream: list[int] = []
    for shard in corpus.shards:
        for start, stop in zip(shard.document_offsets, shard.document_offsets[1:], strict=False):
            stream += [*shard.tokens[start:stop].tolist(), EOD]
    return stream


@given(corpus=corpora, length=st.integers(8, 40))
def test_full_sentences_hold_every_token_once_and_in_order(corpus, length):
    rows = sentence_rows(corpus, sentence_table(corpus.layouts, length - 2), length)

    tokens = rows.input_ids[rows.content]

    assert tokens.tolist() == list(range(FIRST_TOKEN, FIRST_TOKEN + corpus.tokens))


@given(corpus=corpora, length=st.integers(8, 40))
def test_a_sample_is_cls_then_documents_each_closed_by_one_sep(corpus, length):
    rows = sentence_rows(corpus, sentence_table(corpus.layouts, length - 2), length)
    document = corpus.document_numbers()

    for ids in rows.input_ids.tolist():
        real = [token for token in ids if token != PAD]
        parts = np.split(np.array(real), np.flatnonzero(np.array(real) == SEP) + 1)[:-1]
        held = [[t for t in part.tolist() if t >= FIRST_TOKEN] for part in parts]
        assert (real[0], real[-1]) == (CLS, SEP)
        assert all(held)
        assert real.count(CLS) == 1
        numbers = [set(document[np.array(part) - FIRST_TOKEN].tolist()) for part in held]
        assert all(len(one) == 1 for one in numbers)
        assert len(set.union(*numbers)) == len(numbers)


@given(corpus=corpora, length=st.integers(8, 40))
def test_only_the_last_sample_is_more_than_one_position_short(corpus, length):
    rows = sentence_rows(corpus, sentence_table(corpus.layouts, length - 2), length)

    padding = np.count_nonzero(~rows.real, axis=1)

    assert (padding[:-1] <= 1).all()


@given(corpus=corpora, length=st.integers(8, 40))
def test_samples_are_counted_in_the_shard_where_they_begin(corpus, length):
    table = sentence_table(corpus.layouts, length - 2)
    rows = sentence_rows(corpus, table, length)
    ends = np.cumsum([layout.tokens for layout in corpus.layouts])

    first_tokens = rows.input_ids[:, 1] - FIRST_TOKEN
    shards = np.searchsorted(ends, first_tokens, side="right")

    assert np.bincount(shards, minlength=len(ends)).tolist() == list(table.shard_samples)


@given(corpus=corpora, length=st.integers(8, 40), data=st.data())
def test_a_sample_is_the_same_whatever_batch_it_is_looked_up_in(corpus, length, data):
    table = sentence_table(corpus.layouts, length - 2)
    all_rows = sentence_rows(corpus, table, length).input_ids
    some = st.lists(st.integers(0, max(len(all_rows), 1) - 1), max_size=5 if len(all_rows) else 0)
    ids = np.array(data.draw(some), np.int64)

    picked = assemble(
        table.pieces(ids, corpus),
        corpus,
        shape=(len(ids), length),
        prefix_id=CLS,
        suffix_id=SEP,
        pad_id=PAD,
    )

    assert picked.input_ids.tolist() == all_rows[ids].tolist()


def test_a_sample_ends_with_a_sentence_when_that_costs_at_most_a_hundredth():
    corpus = memory_shards([[200, 200, 106, 300, 400]])

    table = sentence_table(corpus.layouts, 510)

    assert table.boundaries.tolist() == [0, 506, 1016, 1206]


def test_the_slack_of_a_hundredth_keeps_real_tokens_above_99_percent():
    random = np.random.default_rng(1)
    documents = [random.integers(3, 60, random.integers(1, 40)).tolist() for _ in range(400)]
    corpus = memory_shards(documents[:200], documents[200:])

    for length in (128, 512):
        rows = sentence_rows(corpus, sentence_table(corpus.layouts, length - 2), length)
        assert np.mean(rows.real[:-1]) >= 0.99
        assert np.mean(rows.real) >= 0.98


def test_short_documents_are_packed_not_lost():
    corpus = memory_shards([[10]] * 1000)

    rows = sentence_rows(corpus, sentence_table(corpus.layouts, 126), 128)

    assert np.count_nonzero(rows.content) == 10_000
    assert np.count_nonzero(rows.real) == 10_000 + 2 * len(rows.input_ids) + np.count_nonzero(
        rows.input_ids[:, :-1] == SEP
    ) - np.count_nonzero((rows.input_ids[:, :-1] == SEP) & ~rows.real[:, 1:])


@pytest.mark.parametrize(
    ("document", "samples"), [([20] * 35, 2), ([10, 900, 10], 2), ([510], 1), ([511], 2)]
)
def test_tails_and_long_sentences_are_kept(document, samples):
    corpus = memory_shards([document])

    rows = sentence_rows(corpus, sentence_table(corpus.layouts, 510), 512)

    assert np.count_nonzero(rows.content) == sum(document)
    assert len(rows.input_ids) == samples


def test_an_empty_document_leaves_no_second_separator():
    corpus = memory_shards([[5], [], [5]])

    rows = sentence_rows(corpus, sentence_table(corpus.layouts, 14), 16)

    assert rows.input_ids[0].tolist().count(SEP) == 2
    assert rows.document_ids[0].max() == 1


@given(corpus=corpora, length=st.integers(4, 40))
def test_blocks_are_the_stream_cut_into_equal_parts_that_share_one_position(corpus, length):
    stream = stream_of(corpus)
    table = block_table(corpus.layouts, length)

    rows = block_rows(corpus, table, length)

    assert len(rows.input_ids) == max(len(stream) - 1, 0) // length
    for number, row in enumerate(rows.input_ids.tolist()):
        assert row == stream[number * length : number * length + length + 1]
    assert table.dropped_labels == max(len(stream) - 1, 0) - rows.input_ids[:, 1:].size


@given(corpus=corpora, length=st.integers(4, 40))
def test_blocks_are_counted_in_the_shard_where_they_begin(corpus, length):
    table = block_table(corpus.layouts, length)
    sizes = [layout.tokens + layout.documents for layout in corpus.layouts]

    starts = np.arange(sum(table.shard_samples)) * length
    shards = np.searchsorted(np.cumsum(sizes), starts, side="right")

    assert np.bincount(shards, minlength=len(sizes)).tolist() == list(table.shard_samples)


def test_ten_thousand_positions_make_four_blocks_and_1807_dropped_labels():
    corpus = memory_shards([[4999], [4999]])

    table = block_table(corpus.layouts, 2048)

    assert (table.count, table.dropped_labels) == (4, 1807)
    labels = block_rows(corpus, table, 2048).input_ids[:, 1:].ravel()
    assert labels.tolist() == stream_of(corpus)[1:8193]


@given(
    documents=st.lists(sentences, min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=4),
    length=st.integers(8, 40),
)
def test_samples_do_not_depend_on_how_the_corpus_is_cut_into_shards(documents, cuts, length):
    bounds = [0, *sorted(min(cut, len(documents)) for cut in cuts), len(documents)]
    whole = memory_shards(documents)
    shards = memory_shards(*[documents[a:b] for a, b in pairwise(bounds)])

    def rows(corpus: MemoryShards) -> list[list[list[int]]]:
        sentences_ = sentence_rows(corpus, sentence_table(corpus.layouts, length - 2), length)
        blocks = block_rows(corpus, block_table(corpus.layouts, length), length)
        return [sentences_.input_ids.tolist(), blocks.input_ids.tolist()]

    assert rows(shards) == rows(whole)
