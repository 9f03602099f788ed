"""What each answer of an S3 server comes to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    ParamValidationError,
    SSLError,
)
from pretrain_jobs.errors import (
    StageError,
    StorageDeniedError,
    StorageFullError,
    StorageRefusedError,
    StorageUnavailableError,
    UserError,
)
from pretrain_jobs.storage.base import AlreadyExistsError, NotFoundError
from pretrain_jobs.storage.s3_errors import ConflictError, from_answer, translated


def answer(
    status: int,
    code: str,
    *,
    operation: str = "PutObject",
    headers: dict[str, str] | None = None,
) -> ClientError:
    response: Any = {
        "Error": {"Code": code, "Message": "the server's own words"},
        "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": headers or {}},
    }
    return ClientError(response, operation)


@pytest.mark.parametrize(
    ("status", "code", "expected", "words"),
    [
        (404, "NoSuchKey", NotFoundError, "no such object"),
        (404, "404", NotFoundError, "no such object"),
        (404, "NoSuchBucket", StorageUnavailableError, "create it or correct the storage URI"),
        (412, "PreconditionFailed", AlreadyExistsError, "exists already"),
        (409, "ConditionalRequestConflict", ConflictError, "under way"),
        (403, "AccessDenied", StorageDeniedError, "grant s3:PutObject"),
        (403, "403", StorageDeniedError, "grant s3:PutObject"),
        (403, "InvalidAccessKeyId", StorageDeniedError, "check AWS_ACCESS_KEY_ID"),
        (403, "SignatureDoesNotMatch", StorageDeniedError, "AWS_SECRET_ACCESS_KEY"),
        (400, "ExpiredToken", StorageUnavailableError, "renew them in the Secret"),
        (400, "BadDigest", StorageUnavailableError, "damaged on its way"),
        (400, "InvalidArgument", StorageRefusedError, "InvalidArgument.: the server's own words"),
        (301, "PermanentRedirect", StorageRefusedError, "lies in eu-west-1"),
        (507, "XMinioStorageFull", StorageFullError, "no space left"),
        (503, "SlowDown", StorageUnavailableError, "answers 503"),
        (429, "TooManyRequests", StorageUnavailableError, "overloaded"),
        (500, "InternalError", StorageUnavailableError, "answers 500"),
    ],
)
def test_an_answer_has_one_error_that_names_bucket_and_operation(
    status: int, code: str, expected: type[StageError], words: str
) -> None:
    headers = {"x-amz-bucket-region": "eu-west-1"}

    error = from_answer(answer(status, code, headers=headers), bucket="corpora", key="a/b")

    assert type(error) is expected
    assert str(error).startswith("bucket 'corpora': PutObject of 'a/b': ")
    assert words in str(error).replace(")", ".")


@pytest.mark.parametrize("code", ["403", "RequestTimeTooSkewed"])
def test_a_refusal_under_a_wrong_clock_tells_the_difference(code: str) -> None:
    served = datetime.now(UTC) - timedelta(minutes=20)
    headers = {"date": format_datetime(served, usegmt=True)}

    error = from_answer(answer(403, code, headers=headers), bucket="corpora", key="a")

    assert type(error) is StorageUnavailableError
    assert "by +120" in str(error)


@pytest.mark.parametrize(
    ("raised", "expected", "words"),
    [
        (NoCredentialsError(), StorageDeniedError, "set AWS_ACCESS_KEY_ID"),
        (
            CredentialRetrievalError(provider="web identity", error_msg="timeout"),
            StorageUnavailableError,
            "cannot be reached",
        ),
        (
            SSLError(endpoint_url="https://s3", error=OSError("self-signed")),
            StorageDeniedError,
            "caBundle",
        ),
        (
            EndpointConnectionError(endpoint_url="http://s3:9000"),
            StorageUnavailableError,
            "http://s3:9000",
        ),
        (ParamValidationError(report="Invalid\nbucket name"), UserError, "Invalid bucket name"),
        (ValueError("Invalid endpoint: x"), UserError, "Invalid endpoint"),
        (FileNotFoundError("/nowhere/ca.crt"), StorageRefusedError, "AWS_CA_BUNDLE"),
    ],
)
def test_an_error_of_the_sdk_has_one_of_ours(
    raised: Exception, expected: type[StageError], words: str
) -> None:
    with pytest.raises(StageError) as caught, translated(bucket="corpora", operation="GetObject"):
        raise raised

    assert type(caught.value) is expected
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
