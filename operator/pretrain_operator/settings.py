"""What the operator is told by its environment, read once at start; no flags, no files.

Every variable has a default but for what only an installation can know. The chart sets them all.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pretrain_operator.errors import SettingsError
from pretrain_operator.observed import Settings

_Seconds = Annotated[float, Field(gt=0, le=86_400)]
_Port = Annotated[int, Field(ge=1, le=65_535)]


def _split(value: Any) -> Any:
    """A comma-separated list; empty entries are none."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _parsed(value: Any) -> Any:
    """A JSON object; what is no JSON is left for the validation to refuse."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


class OperatorSettings(BaseModel):
    """The operator's configuration; each field's variable stands beside it.

    `namespaces` are those whose jobs are run; empty means all. `lease_seconds` is how long a
    silent leader keeps its lead. `poll_seconds` is how often running stages are asked for their
    progress, and how often status tells figures; `resync_seconds` how often every job is planned
    anew without an event.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=False)

    namespaces: Annotated[tuple[str, ...], BeforeValidator(_split)] = Field(
        (), alias="PRETRAIN_OPERATOR_NAMESPACES"
    )
    pod_namespace: str = Field("default", alias="PRETRAIN_OPERATOR_POD_NAMESPACE", min_length=1)
    pod_name: str = Field(
        default_factory=platform.node, alias="PRETRAIN_OPERATOR_POD_NAME", min_length=1
    )
    lease_name: str = Field("pretrain-operator", alias="PRETRAIN_OPERATOR_LEASE_NAME", min_length=1)
    lease_seconds: Annotated[int, Field(ge=3, le=3600)] = Field(
        15, alias="PRETRAIN_OPERATOR_LEASE_SECONDS"
    )
    http_port: _Port = Field(8080, alias="PRETRAIN_OPERATOR_HTTP_PORT")
    poll_seconds: _Seconds = Field(10.0, alias="PRETRAIN_OPERATOR_POLL_SECONDS")
    resync_seconds: _Seconds = Field(60.0, alias="PRETRAIN_OPERATOR_RESYNC_SECONDS")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", alias="PRETRAIN_OPERATOR_LOG_LEVEL"
    )
    log_format: Literal["json", "plain"] = Field("json", alias="PRETRAIN_OPERATOR_LOG_FORMAT")
    kubeconfig: str | None = Field(None, alias="PRETRAIN_KUBECONFIG")
    operator_image: str | None = Field(None, alias="PRETRAIN_OPERATOR_IMAGE")
    preprocess_image: str | None = Field(None, alias="PRETRAIN_PREPROCESS_IMAGE")
    train_image: str | None = Field(None, alias="PRETRAIN_TRAIN_IMAGE")
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        None, alias="PRETRAIN_IMAGE_PULL_POLICY"
    )
    labels: Annotated[dict[str, str] | None, BeforeValidator(_parsed)] = Field(
        None, alias="PRETRAIN_CHILD_LABELS"
    )
    default_storage_uri: str | None = Field(None, alias="PRETRAIN_DEFAULT_STORAGE_URI")
    default_storage_endpoint_url: str | None = Field(
        None, alias="PRETRAIN_DEFAULT_STORAGE_ENDPOINT_URL"
    )
    default_storage_credentials_secret: str | None = Field(
        None, alias="PRETRAIN_DEFAULT_STORAGE_CREDENTIALS_SECRET"
    )

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> OperatorSettings:
        """Read the variables that are set and not empty.

        Raises SettingsError with every problem. Other variables are left alone, as Kubernetes
        itself makes some with such names for the Services of a namespace.
        """
        known = (str(field.alias) for field in cls.model_fields.values())
        values = {name: environment[name] for name in known if environment.get(name)}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise SettingsError(_problems(error)) from None

    def for_plan(self) -> Settings:
        """What the plan needs to know of it."""
        names = (
            "operator_image",
            "preprocess_image",
            "train_image",
            "image_pull_policy",
            "labels",
            "default_storage_uri",
            "default_storage_endpoint_url",
            "default_storage_credentials_secret",
        )
        values = {name: getattr(self, name) for name in names}
        return Settings(**{name: value for name, value in values.items() if value is not None})


def _problems(error: ValidationError) -> list[str]:
    """One sentence a variable; what is wrong, and what was found there."""
    return [
        f"{found['loc'][0]}: {found['msg']}, found {found['input']!r}"
        for found in error.errors(include_url=False)
    ]
