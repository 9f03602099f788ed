"""Refusing a file of a format that this version cannot read, by its number.

Unknown fields of a file are left out (`pretrain_api.base.Message`). What must be understood gets
another number, which is looked at before all else, as the rest may be of any shape.
"""

from __future__ import annotations

from pretrain_api.base import Message
from pydantic import ValidationError

from pretrain_jobs.errors import DataError


class _Versioned(Message):
    format_version: int = 1


def check_format(data: bytes, expected: int, *, what: str) -> None:
    """Raise DataError for JSON of another format; what has no readable number is not judged."""
    try:
        found = _Versioned.model_validate_json(data).format_version
    except ValidationError:
        return
    if found != expected:
        raise DataError(
            f"{what} is of format {found} where {expected} was expected: it is of another "
            "version, whose image can read it"
        )
