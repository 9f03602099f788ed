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

    uri: Uri = Field(
        description=(
            "A file, a prefix (ending in /) or a glob; s3://bucket/key, file:///absolute/path, or "
            "a relative path, which is taken under the storage."
        )
    )
    format: SourceFormat = Field(
        "auto", description="auto goes by the exact suffix: .jsonl, .json, .txt, .csv, .parquet."
    )
    text_field: FieldName = Field(
        "text", description="Field (JSON, Parquet) or column (CSV) that holds a document's text."
    )
    weight: Annotated[float, Field(gt=0, le=1000)] | None = Field(
        None, description="Share of this source in a weighted blend."
    )
    compression: Compression = Field("auto", description="auto goes by .gz, .zst and .xz.")
    document_separator: Annotated[str, Field(max_length=64)] = Field(
        "", description="Line between documents of plain text; empty means a blank line."
    )


class ValidationSpec(ApiModel):
    """Held-out documents: own sources, or a fraction of the corpus chosen by content."""

    sources: Annotated[list[SourceSpec], Field(max_length=64)] = Field(
        [], description="Held-out sources; the fraction has no part when there are any."
    )
    fraction: Annotated[float, Field(ge=0.0, le=0.5)] = Field(
        0.005, description="Share of the corpus's documents held out; 0 holds out none."
    )


class CleaningSpec(ApiModel):
    """What is normalised and removed; each removal is counted by its cause."""

    normalization: Literal["none", "NFC", "NFKC"] = Field(
        "none", description="Unicode normalisation form."
    )
    min_characters: NonNegative = Field(0, description="Shorter documents are removed.")
    max_characters: Positive | None = Field(None, description="Longer documents are removed.")
    languages: Annotated[list[Annotated[str, Field(max_length=8)]], Field(max_length=32)] = Field(
        [], description="Languages (ISO 639-1) to keep; all when empty."
    )
    max_symbol_ratio: Fraction | None = Field(
        None, description="Largest share of characters that are neither letters nor digits."
    )
    max_repetition_ratio: Fraction | None = Field(
        None, description="Largest share of a document's lines that repeat others of it."
    )
    exact_duplicates: Literal["keep", "remove"] = Field(
        "keep", description="What becomes of a document whose text was seen before."
    )
    near_duplicates: Literal["keep", "remove"] = Field(
        "keep", description="What becomes of a document that is similar (MinHash) to one before."
    )


class DatasetSpec(ApiModel):
    """A dataset already prepared, here or by another project's tools."""

    uri: Uri = Field(description="Directory of the dataset.")
    format: DatasetFormat = Field("native", description="Layout of the dataset.")


class CorpusSpec(ApiModel):
    """Raw sources, or a prepared dataset; exactly one of the two."""

    sources: Annotated[list[SourceSpec], Field(max_length=64)] = Field(
        [], description="Raw text; required unless a dataset is given."
    )
    dataset: DatasetSpec | None = None
    validation: ValidationSpec = ValidationSpec()
    cleaning: CleaningSpec = CleaningSpec()
    max_rejects: NonNegative = Field(
        1000, description="Records that may be refused before preprocessing fails as DataError."
    )
