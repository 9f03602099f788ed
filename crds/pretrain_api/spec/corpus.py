"""`spec.corpus`: the raw text, how it is read, cleaned and split."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, FieldName, Fraction, NonNegative, Positive, Uri

SourceFormat = Literal["auto", "jsonl", "json", "text", "csv", "parquet"]
Compression = Literal["auto", "none", "gzip", "zstd", "xz"]
DatasetFormat = Literal["native", "colossalai", "nvidia-bert", "megatron"]


class SourceSpec(ApiModel):
    """One file, prefix (ending in /) or glob of documents."""

    uri: Uri
    format: SourceFormat = Field(
        "auto", description="auto goes by the exact suffix: .jsonl, .json, .txt, .csv, .parquet."
    )
    text_field: FieldName = Field(
        "text", description="Field (JSON, Parquet) or column (CSV) that holds a document's text."
    )
    weight: Annotated[float, Field(gt=0, le=1000)] | None = Field(
        None, description="Share of this source in a weighted blend."
    )
    compression: Compression = "auto"
    document_separator: Annotated[str, Field(max_length=64)] = Field(
        "", description="Line between documents of plain text; empty means a blank line."
    )


class ValidationSpec(ApiModel):
    """Held-out documents: own sources, or a fraction of the corpus chosen by content."""

    sources: Annotated[list[SourceSpec], Field(max_length=64)] = []
    fraction: Annotated[float, Field(ge=0.0, le=0.5)] = 0.005


class CleaningSpec(ApiModel):
    """What is normalised and removed; each removal is counted by its cause."""

    normalization: Literal["none", "NFC", "NFKC"] = "none"
    min_characters: NonNegative = 0
    max_characters: Positive | None = None
    languages: Annotated[list[Annotated[str, Field(max_length=8)]], Field(max_length=32)] = []
    max_symbol_ratio: Fraction | None = None
    max_repetition_ratio: Fraction | None = None
    exact_duplicates: Literal["keep", "remove"] = "keep"
    near_duplicates: Literal["keep", "remove"] = "keep"


class DatasetSpec(ApiModel):
    """A dataset already prepared, here or by another project's tools."""

    uri: Uri
    format: DatasetFormat = "native"


class CorpusSpec(ApiModel):
    """Raw sources, or a prepared dataset; exactly one of the two."""

    sources: Annotated[list[SourceSpec], Field(max_length=64)] = []
    dataset: DatasetSpec | None = None
    validation: ValidationSpec = ValidationSpec()
    cleaning: CleaningSpec = CleaningSpec()
    max_rejects: NonNegative = Field(
        1000, description="Records that may be refused before preprocessing fails as DataError."
    )
