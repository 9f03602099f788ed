"""What an S3 server's or the SDK's error means for a stage, in one sentence.

Messages name the bucket, the operation and what to do. They never hold credentials: the
server's own words are kept only where they cannot be about who asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from botocore import exceptions as sdk

from pretrain_jobs.errors import (
    StageError,
    StorageDeniedError,
    StorageFullError,
    StorageRefusedError,
    StorageUnavailableError,
    UserError,
)
from pretrain_jobs.storage.base import AlreadyExistsError, NotFoundError


class UploadGoneError(StorageUnavailableError):
    """A multipart upload was completed or aborted already."""


class ConflictError(StorageUnavailableError):
    """Another request for the same object is under way: asking again will tell its outcome."""


class NotOfferedError(StorageRefusedError):
    """The server does not know this operation."""


@dataclass(frozen=True)
class _Rule:
    """Answers with one of these codes (or HTTP statuses) are this error, in these words."""

    codes: frozenset[str]
    error: type[StageError]
    text: str


def _rule(codes: str, error: type[StageError], text: str) -> _Rule:
    return _Rule(frozenset(codes.split()), error, text)


_EXPIRED = _rule(
    "ExpiredToken ExpiredTokenException RequestExpired TokenRefreshRequired",
    StorageUnavailableError,
    "the credentials have expired ({code}); renew them in the Secret",
)
_SKEWED = _rule(
    "RequestTimeTooSkewed RequestInTheFuture",
    StorageUnavailableError,
    "this machine's clock differs from the server's by {skew}; correct the clock (NTP), "
    "requests are refused beyond 15 minutes",
)
_RULES = (
    _rule("PreconditionFailed", AlreadyExistsError, "an object exists already"),
    _rule(
        "NoSuchBucket",
        StorageUnavailableError,
        "there is no such bucket; create it or correct the storage URI",
    ),
    _rule("NoSuchUpload", UploadGoneError, "the upload was completed or aborted already"),
    _rule("NoSuchKey NotFound", NotFoundError, "no such object"),
    _rule(
        "InsufficientStorage QuotaExceeded XMinioStorageFull",
        StorageFullError,
        "the server has no space left ({code})",
    ),
    _SKEWED,
    _EXPIRED,
    _rule(
        "InvalidAccessKeyId SignatureDoesNotMatch InvalidToken AuthFailure",
        StorageDeniedError,
        "the credentials are not accepted ({code}); check AWS_ACCESS_KEY_ID, "
        "AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN",
    ),
    _rule(
        "PermanentRedirect AuthorizationHeaderMalformed IllegalLocationConstraintException",
        StorageRefusedError,
        "the bucket lies in {region}; set spec.storage.region",
    ),
    _rule(
        "BadDigest XAmzContentSHA256Mismatch IncompleteBody InvalidDigest",
        StorageUnavailableError,
        "the data was damaged on its way ({code})",
    ),
)
_STATUS_RULES = (
    _rule(
        "401 403",
        StorageDeniedError,
        "refused ({code}); check the credentials and grant {permission}",
    ),
    _rule("404", NotFoundError, "no such object"),
    _rule("409", ConflictError, "another request for it is under way ({code})"),
    _rule("412", AlreadyExistsError, "an object exists already"),
    _rule("501", NotOfferedError, "the server does not offer this ({code})"),
    _rule("507", StorageFullError, "the server has no space left ({code})"),
    _rule("408 429", StorageUnavailableError, "the server is overloaded ({code})"),
)
_REFUSED = _rule("", StorageRefusedError, "the server refuses it ({code}): {message}")
_UNAVAILABLE = _rule("", StorageUnavailableError, "the server answers {status} ({code})")

_PERMISSIONS = {
    "HeadObject": "s3:GetObject and s3:ListBucket",
    "ListObjectsV2": "s3:ListBucket",
    "HeadBucket": "s3:ListBucket",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "ListParts": "s3:ListMultipartUploadParts",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
}
"""Permission of each operation that is not named like it; without s3:ListBucket a missing object
answers 403, which therefore never means "not found"."""

_SKEW_LIMIT_SECONDS = 300


@contextmanager
def translated(*, bucket: str, operation: str, key: str = "") -> Iterator[None]:
    """Turn the SDK's errors of the block into a stage's error."""
    try:
        yield
    except sdk.ClientError as error:
        raise from_answer(error, bucket=bucket, key=key) from error
    except sdk.BotoCoreError as error:
        raise _from_sdk(error, bucket=bucket, operation=operation) from error
    except ValueError as error:
        raise UserError(f"the S3 endpoint or key cannot be used: {error}") from error
    except OSError as error:
        raise StorageRefusedError(
            f"the certificate authorities for S3 cannot be read: {error}; "
            "check AWS_CA_BUNDLE (spec.storage.caBundle)"
        ) from error


def is_expired(error: sdk.ClientError) -> bool:
    """Whether the credentials ran out; the answer to a HEAD has no body that could say so."""
    if error.operation_name.startswith("Head"):
        return _status(error) == 400
    return _code(error) in _EXPIRED.codes


def was_retried(error: BaseException) -> bool:
    """Whether the SDK sent the request that failed more than once, its answer perhaps lost."""
    cause = error.__cause__
    if not isinstance(cause, sdk.ClientError):
        return False
    return bool(cause.response.get("ResponseMetadata", {}).get("RetryAttempts"))


def from_answer(error: sdk.ClientError, *, bucket: str, key: str) -> StageError:
    """The stage's error for a server's answer."""
    rule, operation, skew = _rule_for(error), error.operation_name, _skew_seconds(error)
    text = rule.text.format(
        code=_code(error),
        status=_status(error),
        message=error.response.get("Error", {}).get("Message", ""),
        skew="an unknown time" if skew is None else f"{skew:+.0f} s",
        region=_headers(error).get("x-amz-bucket-region", "another region"),
        permission=_PERMISSIONS.get(operation, f"s3:{operation}"),
    )
    return rule.error(f"bucket {bucket!r}: {operation}{f' of {key!r}' if key else ''}: {text}")


def _rule_for(error: sdk.ClientError) -> _Rule:
    """The error's code decides, then its status; a refusal under a wrong clock is the clock's."""
    code, status = _code(error), _status(error)
    if status == 403 and abs(_skew_seconds(error) or 0) > _SKEW_LIMIT_SECONDS:
        return _SKEWED
    by_code = (rule for rule in _RULES if code in rule.codes)
    by_status = (rule for rule in _STATUS_RULES if str(status) in rule.codes)
    otherwise = _REFUSED if 400 <= status < 500 else _UNAVAILABLE
    return next(by_code, None) or next(by_status, otherwise)


def _from_sdk(error: sdk.BotoCoreError, *, bucket: str, operation: str) -> StageError:
    where = f"bucket {bucket!r}: {operation}"
    if isinstance(error, sdk.NoCredentialsError | sdk.PartialCredentialsError):
        return StorageDeniedError(
            f"{where}: no S3 credentials found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
            "or name a Secret or a service account in spec.storage"
        )
    if isinstance(error, sdk.SSLError):
        return StorageDeniedError(
            f"{where}: the server's certificate is not trusted; "
            "name its authority in spec.storage.caBundle (AWS_CA_BUNDLE)"
        )
    if isinstance(error, sdk.ParamValidationError | sdk.InvalidRegionError):
        return UserError(f"{where}: {' '.join(str(error).split())}")
    return StorageUnavailableError(f"{where}: the server cannot be reached: {error}")


def _code(error: sdk.ClientError) -> str:
    """The server's error code, or the HTTP status where an answer has no body."""
    return str(error.response.get("Error", {}).get("Code", ""))


def _status(error: sdk.ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _headers(error: sdk.ClientError) -> dict[str, Any]:
    return dict(error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}))


def _skew_seconds(error: sdk.ClientError) -> float | None:
    """By how much the clock here is ahead of the server's, from the answer's Date header."""
    try:
        served = parsedate_to_datetime(_headers(error)["date"])
    except (KeyError, ValueError):
        return None
    return (datetime.now(UTC) - served.astimezone(UTC)).total_seconds()
