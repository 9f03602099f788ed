"""`spec.model`: the architecture and its size."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, Uri

ConfigValue = bool | int | float | str


class ModelSpec(ApiModel):
    """A named preset, or a transformers model type with configuration overrides."""

    preset: Annotated[str, Field(max_length=64)] | None = Field(
        None, description="Published hyperparameters to start from, such as roberta-base."
    )
    architecture: Annotated[str, Field(max_length=64, pattern=r"^[a-z0-9][a-z0-9_-]*$")] | None = (
        Field(None, description="bert, roberta, modernbert, gpt2, qwen2 or another model type.")
    )
    config: Annotated[dict[str, ConfigValue], Field(max_length=128)] = Field(
        {}, description="Overrides of the transformers configuration, by its own names."
    )
    init_from: Uri | None = Field(None, description="Hugging Face directory to start from.")
    vocab_pad_multiple: Annotated[int, Field(ge=1, le=1024)] = Field(
        128, description="The model's vocabulary is the tokenizer's, rounded up to this."
    )
    attention: Literal["auto", "sdpa", "eager", "flash_attention_2"] = Field(
        "auto", description="Implementation of attention in transformers; auto is sdpa."
    )
