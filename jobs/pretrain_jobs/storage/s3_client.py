"""Clients of S3-compatible servers: how they are set up, shared and renewed.

Checksums of the SDK's own making are switched off, because many servers refuse them or store
them as part of the object; every body is instead signed with its SHA-256, which the server
checks, and sizes are compared after each write.
"""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

import boto3
from botocore.config import Config
from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.errors import UserError
from pretrain_jobs.storage.s3_errors import translated
from pretrain_jobs.storage.s3_requests import count_requests

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

MEBIBYTE = 1 << 20
ATTEMPTS_ENV = "AWS_MAX_ATTEMPTS"


@dataclass(frozen=True)
class S3Options:
    """How to reach a server, and how to split large files.

    `attempts` counts tries of one request, the first one included. `part_bytes` is the size up
    to which a file is sent in one request and the smallest part of a larger one. Credentials
    are not kept here: boto3 finds them (AWS_* variables, shared files, web identity).
    """

    endpoint_url: str | None = None
    region: str | None = None
    addressing_style: Literal["auto", "path", "virtual"] = "auto"
    attempts: int = 8
    part_bytes: int = 16 * MEBIBYTE

    @classmethod
    def from_spec(cls, storage: StorageSpec) -> S3Options:
        """From a job's storage; AWS_MAX_ATTEMPTS replaces the default number of attempts."""
        endpoint = storage.endpoint_url
        if endpoint and (urlsplit(endpoint).username or urlsplit(endpoint).password):
            raise UserError(
                "spec.storage.endpointUrl must not hold credentials: put them into the Secret "
                "that spec.storage.credentialsSecret names"
            )
        attempts = os.environ.get(ATTEMPTS_ENV, "")
        return cls(
            endpoint_url=endpoint,
            region=storage.region,
            addressing_style=storage.addressing_style,
            attempts=int(attempts) if attempts.isdecimal() and int(attempts) else cls.attempts,
        )


def client_for(options: S3Options) -> S3Client:
    """The client of this process for these options; a fork gets its own connections."""
    return _client(options, os.getpid())


def renew_clients() -> None:
    """Forget all clients, so that the next ones read the credentials anew."""
    _client.cache_clear()


@functools.lru_cache(maxsize=8)
def _client(options: S3Options, _process: int) -> S3Client:
    with translated(bucket="", operation="connecting"):
        client = boto3.session.Session().client(
            "s3",
            endpoint_url=options.endpoint_url,
            region_name=options.region,
            config=_config(options),
        )
    count_requests(client.meta.events)
    return client


def _config(options: S3Options) -> Config:
    return Config(
        retries={"mode": "adaptive", "total_max_attempts": options.attempts},
        connect_timeout=10,
        read_timeout=120,
        max_pool_connections=32,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": options.addressing_style, "payload_signing_enabled": True},
    )
