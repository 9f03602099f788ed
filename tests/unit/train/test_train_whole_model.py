"""The trained model put together from gathered weights: all of them, whole and finite."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from pretrain_jobs.errors import NonFiniteError
from pretrain_jobs.train.finish import whole_model
from pretrain_testing.tiny_architectures import tiny_model
from torch import Tensor

Weights = dict[str, Tensor]
NAME = "transformer.h.0.mlp.c_fc.weight"
EMBEDDING = "transformer.wte.weight"


def gathered(seed: int) -> Weights:
    named = tiny_model("gpt2", seed=seed).named_parameters()
    return {name: value.detach().clone() for name, value in named}


def test_the_model_has_the_gathered_weights_and_the_tokenizers_length() -> None:
    weights = gathered(seed=2)

    model = whole_model(tiny_model("gpt2", seed=1), weights, vocab_size=300)

    found = dict(model.named_parameters())
    assert torch.equal(found[NAME], weights[NAME])
    assert torch.equal(found[EMBEDDING], weights[EMBEDDING][:300])
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight


@pytest.mark.parametrize(
    "damage",
    [
        lambda weights: weights.pop(NAME),
        lambda weights: weights.update(surplus=torch.ones(1)),
        lambda weights: weights.update({NAME: torch.empty(0)}),
        lambda weights: weights.update({NAME: weights[NAME][:1]}),
    ],
    ids=["missing", "surplus", "empty", "a part"],
)
def test_weights_that_were_not_gathered_whole_never_make_a_model(
    damage: Callable[[Weights], object],
) -> None:
    weights = gathered(seed=2)
    damage(weights)

    with pytest.raises(RuntimeError):
        whole_model(tiny_model("gpt2"), weights, vocab_size=300)


def test_a_weight_that_is_not_finite_makes_no_model() -> None:
    weights = gathered(seed=2)
    weights[NAME][0, 0] = float("nan")

    with pytest.raises(NonFiniteError, match=NAME):
        whole_model(tiny_model("gpt2"), weights, vocab_size=300)
