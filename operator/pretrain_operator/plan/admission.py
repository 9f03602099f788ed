"""What the API server's refusals mean: a mistake in the spec, a full quota, or neither.

Its answers are texts for people; the patterns here are those of Kubernetes 1.34 (API machinery,
ResourceQuota, PodSecurity, LimitRanger and webhook admission, the RBAC authorizer).
"""

from __future__ import annotations

import re

from pretrain_api.reports import Cause

MALFORMED = frozenset({400, 422})
"""Answers that the same object will always get."""

_QUOTA = re.compile(r"exceeded quota: ")
_LATER = re.compile(
    r"because it is being terminated"
    r"|error looking up service account"
    r"|cannot (?:get|create|patch|update) resource"
    r"|status unknown for quota"
    r"|failed calling webhook"
)
"""Somebody else has to do something first: about the namespace, an account, rights, a webhook."""

_DENIED = re.compile(
    r"forbidden: |is invalid: |denied the request|denied request"
    r"|failed to create typed patch object|failed to convert new object"
)
"""The last two are server-side apply's, which answers 500 to a field of a wrong type or name."""


def cause_of_refusal(message: str, *, code: int | None = None) -> Cause:
    """Whom a refusal is about: the spec, the quota, or (Infrastructure) anything else.

    `code` is None for a pod that the Job controller could not create, whose text is all there is.
    """
    if _QUOTA.search(message):
        return Cause.QUOTA
    if code in MALFORMED:
        return Cause.ADMISSION_DENIED
    if _LATER.search(message):
        return Cause.INFRASTRUCTURE
    return Cause.ADMISSION_DENIED if _DENIED.search(message) else Cause.INFRASTRUCTURE
