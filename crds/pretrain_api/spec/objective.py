"""`spec.objective`: what the model learns to predict; exactly one member is set."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, Fraction, Positive


class MlmSpec(ApiModel):
    """Masked language modelling (BERT, RoBERTa), optionally by whole words."""

    probability: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    mask_ratio: Fraction = Field(0.8, description="Share of chosen tokens replaced by the mask.")
    random_ratio: Fraction = Field(0.1, description="Share of chosen tokens replaced at random.")
    whole_word: bool = True
    segmenter: Literal["jieba", "whitespace"] = Field(
        "jieba", description="What a word is, in whole-word masking."
    )
    masking: Literal["dynamic", "static"] = "dynamic"
    duplicates: Annotated[int, Field(ge=1, le=100)] = 1
    max_predictions: Positive | None = Field(
        None, description="Most tokens to predict in a sample; no cap when left out."
    )
    next_sentence: bool = False


class ClmSpec(ApiModel):
    """Causal language modelling (GPT-2, Qwen2)."""


class SpanCorruptionSpec(ApiModel):
    """Span corruption (T5)."""

    noise_density: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.15
    mean_span_length: Annotated[float, Field(ge=1.0, le=100.0)] = 3.0


class DenoisingSpec(ApiModel):
    """Text infilling and sentence permutation (BART)."""

    mask_ratio: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.3
    poisson_lambda: Annotated[float, Field(gt=0.0, le=100.0)] = 3.0
    permute_sentences: bool = True


class ObjectiveSpec(ApiModel):
    """A union written as a struct; the default follows from the architecture."""

    mlm: MlmSpec | None = None
    clm: ClmSpec | None = None
    span_corruption: SpanCorruptionSpec | None = None
    denoising: DenoisingSpec | None = None
