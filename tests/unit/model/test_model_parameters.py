"""Parameters: which take weight decay, how many there are, and what they cost to train."""

import pytest
import torch
from pretrain_jobs.model.flops import flops_model
from pretrain_jobs.model.padding import hide_padding, padded_size, resize_vocabulary
from pretrain_jobs.model.parameters import count_parameters, optimizer_groups, split_parameters
from pretrain_testing.tiny_architectures import SIZES, tiny_model
from torch.nn.functional import cross_entropy

ARCHITECTURES = list(SIZES)

WITHOUT_DECAY = {
    "bert": {
        "bert.embeddings.LayerNorm.weight",
        "bert.encoder.layer.0.attention.output.LayerNorm.weight",
        "cls.predictions.transform.LayerNorm.weight",
        "cls.predictions.bias",
    },
    "roberta": {
        "roberta.embeddings.LayerNorm.weight",
        "lm_head.layer_norm.weight",
        "lm_head.bias",
    },
    "modernbert": {
        "model.embeddings.norm.weight",
        "model.layers.1.attn_norm.weight",
        "model.layers.0.mlp_norm.weight",
        "model.final_norm.weight",
        "head.norm.weight",
        "decoder.bias",
    },
    "gpt2": {
        "transformer.h.0.ln_1.weight",
        "transformer.h.0.attn.c_attn.bias",
        "transformer.ln_f.weight",
    },
    "qwen2": {
        "model.layers.0.input_layernorm.weight",
        "model.layers.0.self_attn.q_proj.bias",
        "model.norm.weight",
    },
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_biases_and_norms_take_no_decay_and_matrices_do(architecture):
    model = tiny_model(architecture)

    groups = split_parameters(model)

    shapes = {name: parameter.dim() for name, parameter in model.named_parameters()}
    assert sorted(groups.decay + groups.no_decay) == sorted(shapes)
    assert set(groups.no_decay) >= WITHOUT_DECAY[architecture]
    assert {shapes[name] for name in groups.no_decay} == {1}
    assert {shapes[name] for name in groups.decay} == {2}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_optimizer_gets_every_parameter_once(architecture):
    model = tiny_model(architecture)

    groups = optimizer_groups(model, 0.1)

    assert [group["weight_decay"] for group in groups] == [0.1, 0.0]
    given = [parameter for group in groups for parameter in group["params"]]
    assert len({id(parameter) for parameter in given}) == len(given)
    assert sum(parameter.numel() for parameter in given) == count_parameters(model)


def test_frozen_parameters_are_in_no_group():
    model = tiny_model("bert")
    model.bert.embeddings.requires_grad_(requires_grad=False)

    groups = split_parameters(model)

    assert not any("embeddings" in name for name in groups.decay + groups.no_decay)


def test_gpt2_of_the_published_size_has_its_published_number_of_parameters():
    with torch.device("meta"):
        from transformers import AutoConfig, AutoModelForCausalLM

        model = AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt2"))

    assert count_parameters(model) == 124_439_808
    # 12 layers of 12 * 768^2 weights, and the head of 50,257 * 768
    assert flops_model(model).matmul_parameters == 12 * 12 * 768**2 + 50_257 * 768
    assert flops_model(model).attention_width == 12 * 768


def test_operations_follow_the_formula():
    cost = flops_model(tiny_model("gpt2"))

    # per layer 12 * 32^2 weights, head 384 * 32; two layers of width 32, half of L^2
    weights = 2 * 12 * 32**2 + 384 * 32
    assert cost.step(real_tokens=100, squared_lengths=5000) == 3 * (
        2 * weights * 100 + 4 * 64 * 5000 / 2
    )
    bidirectional = flops_model(tiny_model("bert"))
    assert not bidirectional.causal


@pytest.mark.parametrize(("length", "rows"), [(1, 128), (128, 128), (129, 256), (21128, 21248)])
def test_the_vocabulary_is_padded_to_the_next_multiple(length, rows):
    assert padded_size(length, 128) == rows


def test_padded_columns_get_no_probability_and_no_gradient():
    logits = torch.randn(4, 12, requires_grad=True)
    labels = torch.tensor([0, 3, 8, 9])

    loss = cross_entropy(hide_padding(logits * 1.0, 10), labels)
    loss.backward()

    assert torch.allclose(loss, cross_entropy(logits[:, :10], labels))
    assert hide_padding(logits * 1.0, 10).argmax(-1).max() < 10
    assert logits.grad is not None
    assert not logits.grad[:, 10:].any()
    assert logits.grad[:, :10].all()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_finished_model_is_cut_to_the_tokenizers_length(architecture):
    model = tiny_model(architecture).eval()
    ids = torch.arange(10, 40)[None]
    before = model(ids).logits

    resize_vocabulary(model, 300)

    after = model(ids).logits
    assert model.config.vocab_size == 300
    torch.testing.assert_close(after, before[..., :300], rtol=0, atol=1e-6)
    if model.config.tie_word_embeddings:
        assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
