"""Tiny models of every architecture, with random weights and an invented vocabulary of 300."""

from __future__ import annotations

from typing import Any

from pretrain_api.spec.model import ModelSpec
from pretrain_jobs.model.build import build_config, build_model
from pretrain_jobs.tokenizer.special import SpecialTokens

ENCODERS = ("bert", "roberta", "modernbert")

_SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
SIZES: dict[str, dict[str, Any]] = {
    "bert": _SMALL,
    "roberta": _SMALL,
    "modernbert": _SMALL | {"num_hidden_layers": 3, "local_attention": 16},
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2},
    "qwen2": _SMALL | {"num_key_value_heads": 1},
}


def tokens_of(architecture: str) -> SpecialTokens:
    """Special tokens as that architecture's tokenizers have them; padding of 0."""
    if architecture in ENCODERS:
        special = frozenset(range(5))
        return SpecialTokens(length=300, pad=0, unk=1, cls=2, sep=3, mask=4, special=special)
    return SpecialTokens(length=300, pad=0, bos=0, eos=0, end_of_document=0, special=frozenset({0}))


def tiny_spec(architecture: str, **config: Any) -> ModelSpec:
    """The specification of a tiny model, with overrides of its configuration."""
    return ModelSpec(architecture=architecture, config=SIZES[architecture] | config)


def tiny_model(
    architecture: str, *, seed: int = 0, sequence_length: int = 64, attention: str = "auto"
) -> Any:
    """A tiny model whose weights depend on the seed alone."""
    config = build_config(
        tiny_spec(architecture),
        tokens=tokens_of(architecture),
        sequence_length=sequence_length,
    )
    return build_model(config, seed=seed, attention=attention)
