"""What every model of the API shares: strictness, naming and the reusable scalar types."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "pretrain.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "PretrainJob"
PLURAL = "pretrainjobs"
CONTROLLER = f"{GROUP}/operator"
"""What spec.managedBy says of a job that this operator runs."""


OBJECT_NAME_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
"""A DNS subdomain (RFC 1123), which the names of most Kubernetes objects are."""


class ApiModel(BaseModel):
    """A frozen model with camelCase names on the wire that refuses unknown fields."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        use_enum_values=False,
        allow_inf_nan=False,
    )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """Give itself, as nothing changes a model: pydantic copies a default for each use of it."""
        return self


class Message(ApiModel):
    """What one process leaves for another, which may be of an older or a newer version.

    A reader leaves out the fields that it does not know. So whatever must be understood gets
    another format version, and a field that is added later has a default for those who write none.
    """

    model_config = ConfigDict(extra="ignore")


Uri = Annotated[
    str,
    Field(
        min_length=1,
        max_length=1024,
        description=(
            "s3://bucket/key, file:///absolute/path, or a relative path, which is taken "
            "under the job's storage URI."
        ),
    ),
]
Name = Annotated[str, Field(min_length=1, max_length=253)]
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=OBJECT_NAME_PATTERN)]
"""What a Secret, ConfigMap, service account or PriorityClass can be called."""

Label = Annotated[str, Field(min_length=1, max_length=63)]
FieldName = Annotated[str, Field(min_length=1, max_length=256)]
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1, le=2**53)]
NonNegative = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[int, Field(ge=0, le=315_360_000)]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
