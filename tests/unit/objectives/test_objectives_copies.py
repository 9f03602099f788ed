"""Static masks: an instance's copies differ in their masks alone, and come again in turn."""

import numpy as np
from pretrain_api.spec.objective import MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PackingSpec
from pretrain_jobs.objectives.batch import IGNORED, Batch
from pretrain_jobs.objectives.select import build_objective
from pretrain_jobs.tokenizer.special import SpecialTokens
from pretrain_testing.token_shards import memory_shards

BERT = SpecialTokens(length=5000, pad=0, unk=1, cls=2, sep=3, mask=4, special=frozenset(range(5)))
COPIES = 3
CORPUS = memory_shards([[30]] * 10)


def copy_number(number: int) -> Batch:
    """Ten instances of 32 positions, masked for one copy."""
    built = build_objective(
        ObjectiveSpec(mlm=MlmSpec(masking="static", duplicates=COPIES)),
        PackingSpec(strategy="documents"),
        tokens=BERT,
        sequence_length=32,
    )
    table = built.table(CORPUS.layouts)
    ids = np.arange(sum(table.shard_samples))
    return built.form(table, CORPUS, ids, epochs=np.full(len(ids), number), seed=1)


def test_the_masks_of_an_instance_differ_and_its_tokens_do_not():
    copies = [copy_number(number) for number in range(COPIES)]

    for instance in range(10):
        masks = {tuple(copy.labels[instance].tolist()) for copy in copies}
        assert len(masks) == COPIES
    originals = [np.where(c.labels == IGNORED, c.input_ids, c.labels).tolist() for c in copies]
    assert len(originals[0]) == 10
    assert originals == [originals[0]] * COPIES


def test_after_the_last_copy_the_first_comes_again():
    assert copy_number(COPIES).labels.tolist() == copy_number(0).labels.tolist()
