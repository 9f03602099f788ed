"""Objectives put together: what a specification gives, and the batches formed from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.spec.objective import (
    ClmSpec,
    DenoisingSpec,
    MlmSpec,
    ObjectiveSpec,
    SpanCorruptionSpec,
)
from pretrain_api.spec.preprocess import PackingSpec
from pretrain_jobs.errors import UserError
from pretrain_jobs.objectives.batch import FILLER, IGNORED, Batch
from pretrain_jobs.objectives.select import build_objective
from pretrain_jobs.tokenizer.special import SpecialTokens
from pretrain_testing.token_shards import FIRST_TOKEN, MemoryShards, memory_shards

BERT = SpecialTokens(
    length=5000, pad=0, unk=1, cls=2, sep=3, mask=4, special=frozenset({0, 1, 2, 3, 4, 4999})
)
GPT = SpecialTokens(length=5000, pad=0, bos=0, eos=0, end_of_document=0, special=frozenset({0}))
EOD = 0

corpora = st.lists(
    st.lists(st.lists(st.integers(1, 20), min_size=1, max_size=3), max_size=6),
    min_size=1,
    max_size=3,
).map(lambda shards: memory_shards(*shards))


def form_all(
    corpus: MemoryShards,
    objective: ObjectiveSpec,
    *,
    length: int = 32,
    strategy: str | None = None,
    isolate: bool = False,
    epoch: int = 0,
    seed: int = 1,
) -> Batch:
    """All samples of a corpus, as one batch."""
    built = build_objective(
        objective,
        PackingSpec(strategy=strategy, isolate_documents=isolate),
        tokens=BERT if objective.mlm else GPT,
        sequence_length=length,
    )
    table = built.table(corpus.layouts)
    ids = np.arange(sum(table.shard_samples))
    return built.form(table, corpus, ids, epochs=np.full(len(ids), epoch), seed=seed)


MLM, CLM = ObjectiveSpec(mlm=MlmSpec()), ObjectiveSpec(clm=ClmSpec())
CORPUS = memory_shards([[9, 7], [20, 20, 20], [3]], [[30], [1], [1], [40]])


def stream_of(corpus: MemoryShards) -> list[int]:
    """The corpus with the end-of-document token after each document."""
    numbers = corpus.document_numbers()
    ends = np.flatnonzero(np.diff(numbers, append=-1)) + 1
    return np.insert(np.arange(corpus.tokens) + FIRST_TOKEN, ends, EOD).tolist()


@given(corpus=corpora, length=st.integers(8, 40))
def test_every_element_of_the_stream_but_the_first_is_a_label_once(corpus, length):
    batch = form_all(corpus, CLM, length=length)
    stream = stream_of(corpus)

    assert batch.labels.ravel().tolist() == stream[1 : batch.labels.size + 1]
    assert batch.input_ids.ravel().tolist() == stream[: batch.labels.size]


@given(corpus=corpora, length=st.integers(8, 40))
def test_isolated_blocks_predict_everything_but_the_first_token_of_a_document(corpus, length):
    together = form_all(corpus, CLM, length=length)

    batch = form_all(corpus, CLM, length=length, isolate=True)

    ignored = batch.labels == IGNORED
    assert (ignored == (batch.input_ids == EOD)).all()
    assert (batch.labels[~ignored] == together.labels[~ignored]).all()


@given(corpus=corpora, length=st.integers(8, 24))
def test_whole_documents_predict_each_next_token_and_their_end_once(corpus, length):
    batch = form_all(corpus, CLM, length=length, strategy="documents")
    starts = (
        corpus.document_numbers()[:-1] != corpus.document_numbers()[1:] if corpus.tokens else []
    )
    first_tokens = {FIRST_TOKEN, *(np.flatnonzero(starts) + 1 + FIRST_TOKEN).tolist()}

    labels = batch.labels[batch.labels != IGNORED].tolist()

    if corpus.tokens:
        every = range(FIRST_TOKEN, FIRST_TOKEN + corpus.tokens)
        assert sorted(labels) == sorted(
            [EOD] * corpus.documents + [token for token in every if token not in first_tokens]
        )


@given(corpus=corpora)
def test_a_label_is_the_successor_of_its_input(corpus):
    for strategy in ("blocks", "documents"):
        batch = form_all(corpus, CLM, length=16, strategy=strategy, isolate=True)
        successor = dict(zip(stream_of(corpus), stream_of(corpus)[1:], strict=False))

        seen = batch.labels != IGNORED

        assert not seen[batch.input_ids == EOD].any()
        for given_token, label in zip(batch.input_ids[seen], batch.labels[seen], strict=True):
            assert label == successor[given_token]


def test_a_label_of_the_token_0_counts():
    batch = form_all(CORPUS, CLM, length=24)

    assert (batch.labels == EOD).any()
    assert batch.loss_tokens == batch.labels.size


def test_the_mask_that_is_written_is_the_tokenizers_own():
    roberta = SpecialTokens(
        length=50_265,
        cls=0,
        pad=1,
        sep=2,
        unk=3,
        mask=50_264,
        special=frozenset([*range(4), 50_264]),
    )
    built = build_objective(MLM, PackingSpec(), tokens=roberta, sequence_length=32)
    table = built.table(CORPUS.layouts)

    batch = built.form(table, CORPUS, np.arange(2), epochs=np.zeros(2, np.int64), seed=1)

    assert set(batch.input_ids[batch.labels != IGNORED].tolist()) & {50_264}


def test_positions_restart_with_each_isolated_document():
    batch = form_all(CORPUS, CLM, length=24, isolate=True)

    assert batch.position_ids[0].tolist() == [*range(17), *range(7)]
    assert batch.position_ids[1].tolist() == list(range(24))
    assert form_all(CORPUS, CLM, length=24).position_ids[0].tolist() == list(range(24))


@pytest.mark.parametrize("strategy", ["fullSentences", "documents"])
def test_labels_of_a_masked_sample_are_its_original_tokens(strategy):
    batch = form_all(CORPUS, MLM, strategy=strategy)

    held = np.where(batch.labels == IGNORED, batch.input_ids, batch.labels)

    assert sorted(held[held >= FIRST_TOKEN].tolist()) == list(
        range(FIRST_TOKEN, FIRST_TOKEN + CORPUS.tokens)
    )
    assert (batch.labels != IGNORED).any(axis=1).all()


def test_masks_differ_by_epoch_and_seed_and_repeat_for_the_same():
    def masks(**keys):
        return form_all(CORPUS, MLM, **keys).labels.tolist()

    assert masks() == masks()
    assert masks(epoch=1) == masks(epoch=1) != masks()
    assert masks(seed=2) != masks()


def test_static_masks_are_those_of_their_copy():
    static = ObjectiveSpec(mlm=MlmSpec(masking="static", duplicates=2))

    copies = [form_all(CORPUS, static, epoch=epoch).labels.tolist() for epoch in range(4)]

    assert copies[0] == copies[2] != copies[1] == copies[3]


def test_figures_of_a_batch_count_tokens_positions_and_spans():
    batch = form_all(memory_shards([[5, 3], [4]]), MLM, length=20, isolate=True)

    # [CLS] 8 tokens [SEP], then 4 tokens [SEP], then 5 of padding
    assert (batch.positions, batch.real_tokens) == (20, 15)
    assert batch.squared_lengths == 10**2 + 5**2
    assert form_all(memory_shards([[5, 3], [4]]), MLM, length=20).squared_lengths == 15**2
    assert batch.loss_tokens == 2


def test_filler_rows_and_batches_count_nothing_and_leave_the_others_alone():
    batch = form_all(CORPUS, MLM)

    filled = batch.filled_up(len(batch.sample_ids) + 3)

    assert filled.sample_ids[-3:].tolist() == [FILLER] * 3
    assert (filled.loss_tokens, filled.real_tokens) == (batch.loss_tokens, batch.real_tokens)
    assert filled.squared_lengths == batch.squared_lengths
    assert (filled.input_ids[-3:] == batch.input_ids[0]).all()
    assert (batch.as_filler().loss_tokens, batch.as_filler().real_tokens) == (0, 0)
    assert batch.loss_tokens > 0


def test_predictions_that_no_word_had_room_for_are_counted():
    corpus = memory_shards([[18]], word_length=18)

    batch = form_all(corpus, MLM, length=20)

    assert (batch.loss_tokens, batch.unfilled_predictions) == (0, 3)


@pytest.mark.parametrize(
    ("objective", "strategy", "tokens", "message"),
    [
        (MLM, "blocks", BERT, "packing.strategy is blocks"),
        (CLM, "fullSentences", GPT, "expected blocks or documents"),
        (ObjectiveSpec(mlm=MlmSpec(next_sentence=True)), None, BERT, "nextSentence"),
        (
            ObjectiveSpec(mlm=MlmSpec(mask_ratio=0.8, random_ratio=0.3)),
            None,
            BERT,
            "make more than 1",
        ),
        (ObjectiveSpec(span_corruption=SpanCorruptionSpec()), None, BERT, "span_corruption"),
        (ObjectiveSpec(denoising=DenoisingSpec()), None, BERT, "denoising"),
        (ObjectiveSpec(), None, BERT, "none"),
        (MLM, None, GPT, "no cls token"),
        (CLM, None, BERT, "endOfDocument"),
    ],
)
def test_what_cannot_be_formed_is_refused_with_its_reason(objective, strategy, tokens, message):
    with pytest.raises(UserError, match=message):
        build_objective(
            objective, PackingSpec(strategy=strategy), tokens=tokens, sequence_length=32
        )
