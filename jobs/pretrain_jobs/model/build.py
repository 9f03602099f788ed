"""From the specification to a transformers configuration and a model with its first weights.

Models are fp32 and the seed alone decides their weights. Partitioned construction (ZeRO stage 3)
is the engine's matter: these functions may run inside its context. Presets are already resolved.
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from pretrain_api.spec.model import ModelSpec
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    PretrainedConfig,
    PreTrainedModel,
)

from pretrain_jobs.errors import UserError
from pretrain_jobs.model.padding import padded_size, resize_vocabulary
from pretrain_jobs.objectives.tensors import CAUSAL
from pretrain_jobs.tokenizer.special import SpecialTokens

log = logging.getLogger(__name__)

ARCHITECTURES = ("bert", "roberta", "modernbert", "gpt2", "qwen2")
"""Model types that can be trained from scratch."""

_TOKENS = ("pad", "bos", "eos", "cls", "sep", "mask")
_FIXED = frozenset(
    {"vocab_size", "model_type", "architectures", "dtype", "is_decoder", "is_encoder_decoder"}
    | {f"{name}_token_id" for name in _TOKENS}
)
_OTHER_NAMES = {
    "modernbert": ("global_attn_every_n_layers", "global_rope_theta", "local_rope_theta"),
    "qwen2": ("rope_theta",),
}
"""Names that a configuration class takes without having a field of that name."""

_CONFIG_ERRORS = (StrictDataclassError, OSError, ValueError, KeyError, TypeError, ZeroDivisionError)


def is_causal(config: PretrainedConfig) -> bool:
    """Whether the model predicts the next token."""
    return config.model_type in CAUSAL


def build_config(
    model: ModelSpec, *, tokens: SpecialTokens, sequence_length: int, initial: Path | None = None
) -> PretrainedConfig:
    """The configuration, its vocabulary padded and its positions enough for the samples.

    `initial` is a local Hugging Face directory whose configuration to start from.
    UserError for an unknown architecture or override, a value that does not fit, or too few
    positions.
    """
    architecture = _architecture(model)
    overrides = dict(model.config)
    fixed = _fixed_values(architecture, model, tokens)
    try:
        config = _starting_config(architecture, initial)
        _check_names(architecture, config, overrides)
        values = _config_values(config, initial) | _positions(
            config, overrides, tokens, sequence_length
        )
        config = AutoConfig.for_model(architecture, **(values | overrides | fixed))
    except _CONFIG_ERRORS as error:
        raise UserError(f"spec.model.config does not fit {architecture}: {error}") from error
    _check_heads(config)
    return config


def build_model(config: PretrainedConfig, *, seed: int, attention: str = "auto") -> PreTrainedModel:
    """A model with fresh weights that depend on the seed alone; the caller's generators stay.

    UserError when the configuration contradicts itself.
    """
    auto = _auto_class(config)
    options = {"attn_implementation": _attention(attention), "dtype": torch.float32}
    try:
        return _seeded(seed, lambda: auto.from_config(config, **options))
    except _CONFIG_ERRORS as error:
        raise UserError(
            f"spec.model.config does not make a {config.model_type}: {error}"
        ) from error


def load_initial(
    directory: Path, config: PretrainedConfig, *, seed: int, attention: str = "auto"
) -> PreTrainedModel:
    """The model of a local Hugging Face directory, with at least the rows that `config` has.

    Rows beyond those stay, as published embeddings often are padded; the seed decides the rows
    that are added. UserError when the directory has other sizes or no language-model head.
    """
    rows = AutoConfig.from_pretrained(directory).vocab_size
    try:
        model, info = _auto_class(config).from_pretrained(
            directory,
            config=type(config).from_dict(config.to_dict() | {"vocab_size": rows}),
            attn_implementation=_attention(attention),
            dtype=torch.float32,
            output_loading_info=True,
        )
    except (OSError, RuntimeError, ValueError) as error:
        raise UserError(f"spec.model.initFrom cannot be loaded: {error}") from error
    if info["missing_keys"]:
        raise UserError(
            "spec.model.initFrom lacks weights that the model needs:"
            f" {', '.join(sorted(info['missing_keys'])[:5])}. Start from a checkpoint that was"
            " saved with its language-model head."
        )
    if info["unexpected_keys"]:
        log.warning("initFrom has weights that are not used: %s", sorted(info["unexpected_keys"]))
    if rows < config.vocab_size:
        _seeded(seed, lambda: resize_vocabulary(model, config.vocab_size))
    loaded: PreTrainedModel = model
    return loaded


def _architecture(model: ModelSpec) -> str:
    if model.architecture in ARCHITECTURES:
        return model.architecture
    raise UserError(
        f"spec.model.architecture is {model.architecture!r}{_suggest(str(model.architecture))};"
        f" expected one of {', '.join(ARCHITECTURES)}."
    )


def _suggest(name: str, known: tuple[str, ...] = ARCHITECTURES) -> str:
    close = difflib.get_close_matches(name, known, n=2)
    return f" (did you mean {' or '.join(close)}?)" if close else ""


def _starting_config(architecture: str, initial: Path | None) -> PretrainedConfig:
    config: PretrainedConfig
    if initial is None:
        config = AutoConfig.for_model(architecture)
        return config
    config = AutoConfig.from_pretrained(initial)
    if config.model_type != architecture:
        raise UserError(
            f"spec.model.initFrom holds a {config.model_type}, but spec.model.architecture is"
            f" {architecture}."
        )
    return config


def _config_values(config: PretrainedConfig, initial: Path | None) -> dict[str, Any]:
    """What to start from: nothing but the class's own defaults, or the directory's values."""
    if initial is None:
        return {}
    return {name: value for name, value in config.to_diff_dict().items() if name != "model_type"}


def _fixed_values(architecture: str, model: ModelSpec, tokens: SpecialTokens) -> dict[str, Any]:
    """What the tokenizer decides.

    A causal model whose padding is its end of text gets no padding id: an embedding's padding row
    is never trained.
    """
    ids = {f"{name}_token_id": getattr(tokens, name) for name in _TOKENS}
    if architecture in CAUSAL and tokens.pad in (tokens.eos, tokens.end_of_document):
        ids["pad_token_id"] = None
    always = {"pad_token_id", "bos_token_id", "eos_token_id"}
    kept = {name: value for name, value in ids.items() if value is not None or name in always}
    return kept | {"vocab_size": padded_size(tokens.length, model.vocab_pad_multiple)}


def _check_names(architecture: str, config: PretrainedConfig, overrides: dict[str, Any]) -> None:
    known = {*config.to_dict(), *config.attribute_map, *_OTHER_NAMES.get(architecture, ())}
    for name in sorted(overrides):
        if name in _FIXED:
            raise UserError(
                f"spec.model.config.{name} cannot be set: it follows from the architecture and the"
                " tokenizer. Leave it out."
            )
        if name not in known:
            raise UserError(
                f"spec.model.config.{name} is not a setting of {architecture}"
                f"{_suggest(name, tuple(sorted(known - _FIXED)))}."
            )


def _positions(
    config: PretrainedConfig,
    overrides: dict[str, Any],
    tokens: SpecialTokens,
    sequence_length: int,
) -> dict[str, int]:
    """Position rows, as many as the samples need; RoBERTa's begin after its padding id."""
    field = config.attribute_map.get("max_position_embeddings", "max_position_embeddings")
    offset = (tokens.pad or 0) + 1 if config.model_type == "roberta" else 0
    needed = sequence_length + offset
    given = overrides.get(field, overrides.get("max_position_embeddings"))
    if given is None:
        return {field: max(needed, getattr(config, field))}
    if isinstance(given, int) and given < needed:
        raise UserError(
            f"spec.model.config.{field} is {given}, but samples of {sequence_length} positions need"
            f" {needed}{' (the padding id and 1 included)' if offset else ''}. Raise it or lower"
            " spec.preprocess.sequenceLength."
        )
    return {}


def _check_heads(config: PretrainedConfig) -> None:
    heads = config.num_attention_heads
    groups = getattr(config, "num_key_value_heads", None) or heads
    if config.hidden_size % heads or heads % groups:
        raise UserError(
            f"spec.model.config has {heads} attention heads (num_attention_heads), {groups} of"
            f" keys and values (num_key_value_heads) and a width of {config.hidden_size}"
            " (hidden_size); heads must divide the width, and key-value heads the heads."
        )


def _auto_class(config: PretrainedConfig) -> Any:
    return AutoModelForCausalLM if is_causal(config) else AutoModelForMaskedLM


def _attention(attention: str) -> str:
    return "sdpa" if attention == "auto" else attention


def _seeded(seed: int, build: Callable[[], PreTrainedModel]) -> PreTrainedModel:
    """What `build` makes with torch's generators seeded; they are as before afterwards."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        return build()
