"""A bucket, and the one way to ask its server something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from botocore import exceptions as sdk

from pretrain_jobs.storage.s3_client import S3Options, client_for, renew_clients
from pretrain_jobs.storage.s3_errors import is_expired, translated

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_ANSWER = TypeVar("_ANSWER")


@dataclass(frozen=True)
class Bucket:
    """A bucket's name and how to reach it; holds no connection, so it may be pickled."""

    name: str
    options: S3Options

    def ask(self, operation: str, call: Callable[[S3Client], _ANSWER], *, key: str = "") -> _ANSWER:
        """Make one call and return its answer, or raise the stage's error for it.

        Credentials that have expired are read anew, once.
        """
        with translated(bucket=self.name, operation=operation, key=key):
            try:
                return call(client_for(self.options))
            except sdk.ClientError as error:
                if not is_expired(error):
                    raise
                renew_clients()
                return call(client_for(self.options))
