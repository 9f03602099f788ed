"""`spec.preprocess`: how text becomes a dataset of token shards."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, Positive
from pretrain_api.spec.workers import ResourcesSpec

PackingStrategy = Literal["fullSentences", "documents", "blocks", "segmentPairs"]


class PackingSpec(ApiModel):
    """How token streams are cut into samples when training reads them."""

    strategy: PackingStrategy | None = Field(
        None, description="fullSentences for MLM and blocks for CLM when left out."
    )
    isolate_documents: bool = Field(
        False, description="Documents packed into one sample do not attend to each other."
    )


class PreprocessSpec(ApiModel):
    """Slices run as indexes of one Indexed Job; shards do not depend on the parallelism."""

    sequence_length: Annotated[int, Field(ge=8, le=1_048_576)] | None = Field(
        None, description="Positions of a sample, special tokens included; 512 when left out."
    )
    parallelism: Annotated[int, Field(ge=1, le=10_000)] = Field(
        1, description="Slices prepared at once; the dataset does not depend on it."
    )
    slice_bytes: Annotated[int, Field(ge=1024, le=2**53)] = Field(
        128 * 2**20, description="Input bytes of one slice, before decompression."
    )
    shard_size: Positive = Field(16 * 2**20, description="Tokens a shard holds at most.")
    user_dictionary: Annotated[str, Field(max_length=1024)] | None = Field(
        None, description="URI of a jieba user dictionary."
    )
    packing: PackingSpec = PackingSpec()
    resources: ResourcesSpec = ResourcesSpec()
    pod_template: dict[str, Any] | None = Field(
        None, description="Strategic overrides of the pod (core/v1 PodTemplateSpec)."
    )
