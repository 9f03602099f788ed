"""`spec.objective`: what the model learns to predict; exactly one member is set."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, Fraction, Positive


class MlmSpec(ApiModel):
    """Masked language modelling (BERT, RoBERTa), optionally by whole words."""

    probability: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.15, description="Share of tokens to predict."
    )
    mask_ratio: Fraction = Field(0.8, description="Share of chosen tokens replaced by the mask.")
    random_ratio: Fraction = Field(0.1, description="Share of chosen tokens replaced at random.")
    whole_word: bool = Field(True, description="Choose all tokens of a word, or none.")
    segmenter: Literal["jieba", "whitespace"] = Field(
        "jieba", description="What a word is, in whole-word masking."
    )
    masking: Literal["dynamic", "static"] = Field(
        "dynamic", description="dynamic masks anew in each epoch, static once per copy."
    )
    duplicates: Annotated[int, Field(ge=1, le=100)] = Field(
        1, description="Copies of each sample, masked differently, in static masking."
    )
    max_predictions: Positive | None = Field(
        None, description="Most tokens to predict in a sample; no cap when left out."
    )
    next_sentence: bool = Field(
        False, description="Also predict whether a second segment follows the first (BERT)."
    )


class ClmSpec(ApiModel):
    """Causal language modelling (GPT-2, Qwen2)."""


class SpanCorruptionSpec(ApiModel):
    """Span corruption (T5)."""

    noise_density: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.15, description="Share of tokens in spans to predict."
    )
    mean_span_length: Annotated[float, Field(ge=1.0, le=100.0)] = Field(
        3.0, description="Mean tokens of a span."
    )


class DenoisingSpec(ApiModel):
    """Text infilling and sentence permutation (BART)."""

    mask_ratio: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.3, description="Share of tokens in spans that one mask replaces."
    )
    poisson_lambda: Annotated[float, Field(gt=0.0, le=100.0)] = Field(
        3.0, description="Mean tokens of a span, Poisson-distributed."
    )
    permute_sentences: bool = Field(True, description="Shuffle the sentences of a sample.")


class ObjectiveSpec(ApiModel):
    """What the model learns to predict: one of these, the architecture's own when left out."""

    mlm: MlmSpec | None = None
    clm: ClmSpec | None = None
    span_corruption: SpanCorruptionSpec | None = None
    denoising: DenoisingSpec | None = None
