"""Logits at the labels alone equal those of the full product."""

import pytest
import torch
from pretrain_api.spec.model import ModelSpec
from pretrain_jobs.model.build import build_config, build_model
from pretrain_jobs.tokenizer.special import SpecialTokens
from pretrain_jobs.train.label_rows import LabelRows
from transformers import PreTrainedModel

IGNORED = -100
TOKENS = SpecialTokens(length=300, pad=0, unk=1, cls=2, sep=3, mask=4, eos=3, bos=2)
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
SIZES = {
    "bert": TINY,
    "roberta": TINY,
    "modernbert": TINY,
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2},
    "qwen2": TINY | {"num_key_value_heads": 1},
}


def tiny_model(architecture: str) -> PreTrainedModel:
    spec = ModelSpec(architecture=architecture, config=SIZES[architecture])
    return build_model(build_config(spec, tokens=TOKENS, sequence_length=16), seed=0)


@pytest.mark.parametrize("architecture", SIZES)
def test_loss_and_gradients_equal_those_of_all_positions(architecture: str) -> None:
    torch.manual_seed(3)
    inputs = torch.randint(5, 300, (3, 16))
    labels = torch.where(torch.rand(3, 16) < 0.2, torch.randint(5, 300, (3, 16)), IGNORED)
    full, chosen = tiny_model(architecture).eval(), tiny_model(architecture).eval()

    logits = full(input_ids=inputs).logits.flatten(0, 1)
    expected = torch.nn.functional.cross_entropy(
        logits, labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )
    expected.backward()
    targets = LabelRows(chosen).choose(labels)
    own = torch.nn.functional.cross_entropy(
        chosen(input_ids=inputs).logits, targets, reduction="sum"
    )
    own.backward()

    torch.testing.assert_close(own, expected)
    assert own.requires_grad
    for (name, one), (_, other) in zip(
        chosen.named_parameters(), full.named_parameters(), strict=True
    ):
        torch.testing.assert_close(one.grad, other.grad, atol=1e-5, rtol=1e-4, msg=name)


def test_a_choice_counts_for_one_forward_call() -> None:
    model = tiny_model("bert").eval()
    rows = LabelRows(model)
    inputs = torch.randint(5, 300, (2, 8))
    rows.choose(torch.full((2, 8), IGNORED))

    first, second = model(input_ids=inputs).logits, model(input_ids=inputs).logits

    assert first.shape == (0, model.config.vocab_size)
    assert second.shape == (2, 8, model.config.vocab_size)
