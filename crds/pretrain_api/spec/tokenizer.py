"""`spec.tokenizer`: load a Hugging Face tokenizer, or train one on the corpus."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, Positive, Uri

Algorithm = Literal["wordpiece", "byteLevelBpe", "unigram"]


class TokenizerTrainingSpec(ApiModel):
    """Training on a bounded sample that is spread over the whole corpus."""

    algorithm: Algorithm | None = Field(
        None, description="Follows from the architecture when left out."
    )
    vocab_size: Annotated[int, Field(ge=64, le=1_000_000)] = Field(
        21_128, description="Most tokens, special ones included."
    )
    min_frequency: Annotated[int, Field(ge=1, le=1_000_000)] = Field(
        2, description="Rarest pair that may be merged."
    )
    lowercase: bool = Field(
        True, description="Fold case; false for byte-level BPE and unigram when left out."
    )
    max_sample_bytes: Positive = Field(
        64 * 2**20, description="Text to train on, spread over the corpus."
    )
    max_piece_length: Annotated[int, Field(ge=1, le=1000)] = Field(
        16, description="Most characters of a token."
    )


class TokenizerSpec(ApiModel):
    """Either `uri` or `train`; training with the defaults when both are left out."""

    uri: Uri | None = Field(None, description="Hugging Face tokenizer directory.")
    train: TokenizerTrainingSpec | None = None
    end_of_document: Annotated[str, Field(max_length=64)] | None = Field(
        None, description="Token after each document; the tokenizer's own eos when left out."
    )
