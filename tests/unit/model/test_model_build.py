"""Configurations and models from a specification."""

import pytest
import torch
from pretrain_api.spec.model import ModelSpec
from pretrain_jobs.errors import UserError
from pretrain_jobs.model.build import build_config, build_model, load_initial
from pretrain_jobs.tokenizer.special import SpecialTokens
from pretrain_testing.tiny_architectures import SIZES, tiny_model, tiny_spec, tokens_of

ARCHITECTURES = list(SIZES)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_special_ids_and_the_padded_vocabulary_are_in_the_configuration(architecture):
    tokens = tokens_of(architecture)

    config = build_config(tiny_spec(architecture), tokens=tokens, sequence_length=64)

    assert config.vocab_size == 384
    assert config.eos_token_id == tokens.eos
    assert config.bos_token_id == tokens.bos
    if architecture in ("bert", "roberta", "modernbert"):
        assert config.pad_token_id == tokens.pad
        assert (config.cls_token_id, config.sep_token_id, config.mask_token_id) == (
            tokens.cls,
            tokens.sep,
            tokens.mask,
        )


@pytest.mark.parametrize("architecture", ["gpt2", "qwen2"])
def test_an_end_of_text_that_is_also_the_padding_is_trained(architecture):
    model = tiny_model(architecture)

    model(input_ids=torch.tensor([[0, 7, 0, 9]]), use_cache=False).logits[0, -1, 5].backward()

    assert model.config.pad_token_id is None
    assert model.get_input_embeddings().weight.grad[0].abs().sum() > 0


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_seed_alone_decides_the_weights(architecture):
    torch.manual_seed(5)
    first = tiny_model(architecture, seed=1).state_dict()
    after = torch.rand(1)
    torch.manual_seed(5)

    again, other = tiny_model(architecture, seed=1).state_dict(), tiny_model(architecture, seed=2)

    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], value) for name, value in other.state_dict().items())
    assert torch.equal(torch.rand(1), after)
    assert {value.dtype for value in first.values() if value.is_floating_point()} == {torch.float32}


@pytest.mark.parametrize(("pad", "rows"), [(0, 513), (1, 514), (3, 516)])
def test_roberta_gets_positions_beyond_its_padding_id_and_takes_a_full_row(pad, rows):
    tokens = SpecialTokens(length=300, pad=pad, cls=10, sep=11, mask=4)
    config = build_config(tiny_spec("roberta"), tokens=tokens, sequence_length=512)

    logits = build_model(config, seed=0)(input_ids=torch.full((1, 512), 20)).logits

    assert config.max_position_embeddings == rows
    assert logits.shape == (1, 512, 384)
    with pytest.raises(UserError, match=f"need {rows}"):
        build_config(
            tiny_spec("roberta", max_position_embeddings=rows - 1),
            tokens=tokens,
            sequence_length=512,
        )


@pytest.mark.parametrize(
    ("architecture", "field"), [("bert", "max_position_embeddings"), ("gpt2", "n_positions")]
)
def test_positions_grow_with_the_samples_and_a_smaller_setting_is_refused(architecture, field):
    tokens = tokens_of(architecture)

    grown = build_config(tiny_spec(architecture), tokens=tokens, sequence_length=2048)

    assert getattr(grown, field) == 2048
    with pytest.raises(UserError, match=f"{field} is 1024"):
        build_config(tiny_spec(architecture, **{field: 1024}), tokens=tokens, sequence_length=2048)


@pytest.mark.parametrize(
    ("architecture", "config", "message"),
    [
        ("bert", {"hiden_size": 8}, "did you mean hidden_size"),
        ("gpt2", {"n_layers": 8}, "did you mean n_layer"),
        ("bert", {"hidden_size": "wide"}, "hidden_size"),
        ("bert", {"vocab_size": 8}, "follows from the architecture and the tokenizer"),
        ("roberta", {"pad_token_id": 8}, "follows from"),
        ("bert", {"num_attention_heads": 5}, "heads must divide the width"),
        ("qwen2", {"num_attention_heads": 4, "num_key_value_heads": 3}, "key-value heads"),
    ],
)
def test_an_override_that_does_not_fit_is_refused_by_name(architecture, config, message):
    spec = ModelSpec(architecture=architecture, config=SIZES[architecture] | config)

    with pytest.raises(UserError, match=message):
        build_config(spec, tokens=tokens_of(architecture), sequence_length=64)


def test_a_value_that_only_the_model_refuses_is_the_users_error_too():
    config = build_config(
        tiny_spec("bert", hidden_act="gelo"), tokens=tokens_of("bert"), sequence_length=64
    )

    with pytest.raises(UserError, match="gelo"):
        build_model(config, seed=0)


@pytest.mark.parametrize("architecture", ["robert", None])
def test_an_unknown_architecture_is_refused_with_those_that_there_are(architecture):
    with pytest.raises(UserError, match="expected one of bert, roberta"):
        build_config(
            ModelSpec(architecture=architecture), tokens=tokens_of("bert"), sequence_length=64
        )


def test_settings_with_a_name_of_their_own_in_the_architecture_are_taken_under_both():
    spec = ModelSpec(architecture="gpt2", config={"hidden_size": 32, "n_layer": 1, "n_head": 2})

    config = build_config(spec, tokens=tokens_of("gpt2"), sequence_length=64)

    assert (config.n_embd, config.n_layer) == (32, 1)


def test_every_nth_layer_of_modernbert_can_be_set_global():
    spec = tiny_spec("modernbert", global_attn_every_n_layers=2)

    config = build_config(spec, tokens=tokens_of("modernbert"), sequence_length=64)

    assert config.layer_types == ["full_attention", "sliding_attention", "full_attention"]


@pytest.mark.parametrize("architecture", ["bert", "gpt2", "modernbert"])
def test_a_model_starts_from_a_directory_with_its_vocabulary_padded(architecture, tmp_path):
    tokens, spec = tokens_of(architecture), tiny_spec(architecture)
    unpadded = spec.model_copy(update={"vocab_pad_multiple": 1})
    published = build_model(
        build_config(unpadded, tokens=tokens, sequence_length=64), seed=3
    ).eval()
    published.save_pretrained(tmp_path)
    bare = ModelSpec(architecture=architecture)

    config = build_config(bare, tokens=tokens, sequence_length=64, initial=tmp_path)
    model = load_initial(tmp_path, config, seed=0).eval()

    ids = torch.arange(10, 40)[None]
    assert model.config.vocab_size == 384
    torch.testing.assert_close(
        model(ids).logits[..., :300], published(ids).logits, rtol=0, atol=1e-6
    )
    again = load_initial(tmp_path, config, seed=0).state_dict()
    assert all(torch.equal(value, again[name]) for name, value in model.state_dict().items())


def test_a_directory_without_a_language_model_head_is_refused(tmp_path):
    model = tiny_model("bert")
    model.bert.save_pretrained(tmp_path)

    with pytest.raises(UserError, match="language-model head"):
        load_initial(tmp_path, model.config, seed=0)


def test_a_directory_of_another_architecture_is_refused(tmp_path):
    tiny_model("gpt2").save_pretrained(tmp_path)

    with pytest.raises(UserError, match="holds a gpt2"):
        build_config(
            tiny_spec("bert"), tokens=tokens_of("bert"), sequence_length=64, initial=tmp_path
        )
