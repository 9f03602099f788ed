"""`spec.storage`: where datasets, checkpoints, models and exports lie."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, ObjectName, Uri


class StorageSpec(ApiModel):
    """An object store or a file system that every pod of the job can reach."""

    uri: Uri = Field(
        description=(
            "s3://bucket/prefix or file:///directory under which the job's artifacts lie, and "
            "its relative URIs are taken."
        )
    )
    endpoint_url: Annotated[str, Field(max_length=1024)] | None = Field(
        None, description="Endpoint of an S3-compatible server; AWS when left out."
    )
    region: Annotated[str, Field(max_length=64)] | None = Field(
        None, description="Region of the bucket."
    )
    credentials_secret: ObjectName | None = Field(
        None,
        description=(
            "Secret with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN)."
        ),
    )
    service_account_name: ObjectName | None = Field(
        None, description="Service account of the pods, for workload identity."
    )
    ca_bundle: ObjectName | None = Field(
        None, description="ConfigMap whose key ca.crt holds the certificate authority to trust."
    )
    addressing_style: Literal["auto", "path", "virtual"] = Field(
        "auto", description="Whether the bucket is in a URL's path or host name."
    )
