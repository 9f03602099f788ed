"""The PretrainJob object as a whole."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field

from pretrain_api.base import ApiModel, Label
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.status import PretrainJobStatus


class ObjectMeta(ApiModel):
    """The part of metav1.ObjectMeta that is read here; the rest is kept as it is."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(min_length=1, max_length=63)] = Field(
        description="The job's name, which its pods carry too."
    )
    namespace: Label = "default"
    uid: str = ""
    generation: int = 1
    creation_timestamp: AwareDatetime | None = None
    deletion_timestamp: AwareDatetime | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class PretrainJob(ApiModel):
    """From raw text to an evaluated, exported language model, in one object."""

    api_version: Literal["pretrain.dev/v1alpha1"]
    kind: Literal["PretrainJob"]
    metadata: ObjectMeta = Field(description="The job's name, its namespace and its labels.")
    spec: PretrainJobSpec
    status: PretrainJobStatus = PretrainJobStatus()
