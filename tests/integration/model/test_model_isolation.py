"""Documents packed into one sample do not see each other, exactly, in every architecture.

Real models on the CPU in float32; a few seconds together.
"""

import numpy as np
import pytest
import torch
from pretrain_api.spec.objective import ClmSpec, MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PackingSpec
from pretrain_jobs.errors import UserError
from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.objectives.select import build_objective
from pretrain_jobs.objectives.tensors import check_isolation, label_tensor, model_inputs
from pretrain_testing.tiny_architectures import ENCODERS, SIZES, tiny_model, tokens_of
from pretrain_testing.token_shards import memory_shards
from transformers import PreTrainedModel

ARCHITECTURES = list(SIZES)
LENGTH = 64
CPU = torch.device("cpu")
CORPUS = memory_shards([[7, 18], [1], [9], [24, 6], [15], [11, 3], [2], [5, 22]])


def packed(architecture: str, *, isolate: bool, strategy: str | None = None) -> Batch:
    """All samples of a small corpus, documents of 1 to 30 tokens several to a sample."""
    encoder = architecture in ENCODERS
    objective = build_objective(
        ObjectiveSpec(mlm=MlmSpec()) if encoder else ObjectiveSpec(clm=ClmSpec()),
        PackingSpec(strategy=strategy, isolate_documents=isolate),
        tokens=tokens_of(architecture),
        sequence_length=LENGTH,
    )
    table = objective.table(CORPUS.layouts)
    ids = np.arange(sum(table.shard_samples))
    return objective.form(table, CORPUS, ids, epochs=np.zeros(len(ids), np.int64), seed=1)


@torch.no_grad()
def logits_of(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    return model(**model_inputs(batch, model.config, CPU)).logits


def changed_by_another_document(model: PreTrainedModel, batch: Batch) -> torch.Tensor:
    """Change the tokens of each first row's document in turn: how far others' logits move."""
    before = logits_of(model, batch)
    moved = torch.zeros(())
    for document in range(batch.document_ids[0].max() + 1):
        inside = batch.document_ids[0] == document
        batch.input_ids[0, inside] ^= 1
        after = logits_of(model, batch)
        batch.input_ids[0, inside] ^= 1
        others = torch.from_numpy(~inside & (batch.document_ids[0] >= 0))
        assert not torch.equal(before[0, ~others], after[0, ~others])
        moved = torch.maximum(moved, (before - after)[0, others].abs().max())
    return moved


@pytest.mark.parametrize("strategy", [None, "documents"])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_changing_a_document_leaves_the_others_logits_exactly_as_they_were(architecture, strategy):
    model = tiny_model(architecture, sequence_length=LENGTH).eval()

    batch = packed(architecture, isolate=True, strategy=strategy)

    assert batch.document_ids[0].max() >= 2
    assert changed_by_another_document(model, batch) == 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_without_isolation_the_same_change_is_seen_by_others(architecture):
    model = tiny_model(architecture, sequence_length=LENGTH).eval()

    batch = packed(architecture, isolate=False)

    assert changed_by_another_document(model, batch) > 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_isolated_document_has_the_logits_that_it_has_alone(architecture):
    model = tiny_model(architecture, sequence_length=LENGTH).eval()
    batch = packed(architecture, isolate=True, strategy="documents")

    together = logits_of(model, batch)

    for row, document in np.ndindex(len(batch.sample_ids), batch.document_ids.max() + 1):
        inside = batch.document_ids[row] == document
        if inside.any():
            ids = torch.from_numpy(batch.input_ids[row, inside])[None]
            with torch.no_grad():
                alone = model(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
            torch.testing.assert_close(together[row, torch.from_numpy(inside)], alone[0])


@pytest.mark.parametrize("architecture", ["bert", "roberta", "modernbert"])
def test_padding_is_not_attended_to(architecture):
    model = tiny_model(architecture, sequence_length=LENGTH).eval()
    batch = packed(architecture, isolate=False)
    padding = batch.document_ids < 0

    before = logits_of(model, batch)
    ids = torch.from_numpy(batch.input_ids[-1:, ~padding[-1]])
    with torch.no_grad():
        alone = model(input_ids=ids).logits

    assert padding[-1].any()
    torch.testing.assert_close(before[-1, torch.from_numpy(~padding[-1])], alone[0])


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_filler_rows_leave_no_trace_in_the_gradient(architecture):
    def gradient(batch: Batch) -> torch.Tensor:
        model = tiny_model(architecture, sequence_length=LENGTH).eval()
        logits = model(**model_inputs(batch, model.config, CPU)).logits
        labels = label_tensor(batch, CPU)
        torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), labels.flatten(), reduction="sum"
        ).backward()
        return model.get_input_embeddings().weight.grad

    batch = packed(architecture, isolate=True)

    expected, found = gradient(batch), gradient(batch.filled_up(len(batch.sample_ids) + 2))

    assert torch.isfinite(found).all()
    torch.testing.assert_close(found, expected)
    assert not gradient(batch.as_filler()).any()


@pytest.mark.parametrize("architecture", ["gpt2", "qwen2"])
def test_causal_models_isolate_under_eager_attention_too(architecture):
    model = tiny_model(architecture, sequence_length=LENGTH, attention="eager").eval()

    assert model.config._attn_implementation == "eager"
    assert changed_by_another_document(model, packed(architecture, isolate=True)) == 0


def test_isolation_is_refused_where_it_would_leak():
    model = tiny_model("bert", sequence_length=LENGTH, attention="eager")

    with pytest.raises(UserError, match="set it to sdpa"):
        check_isolation(model.config)
