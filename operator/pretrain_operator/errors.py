"""How the operator's process fails: exceptions with one clear sentence and an exit code.

Failures of a job are none of these: they are the status of that job. Only `pretrain_operator.main`
and the top of a reconcile catch these.
"""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, ClassVar


class OperatorError(Exception):
    """Base of all failures that the operator knows by name."""

    exit_code: ClassVar[int] = 1


class SettingsError(OperatorError):
    """The environment does not configure an operator; `problems` has everything to correct."""

    exit_code = 64

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


class CredentialsError(OperatorError):
    """There is no way to an API server: no service account and no usable kubeconfig."""

    exit_code = 64


class LeaseLostError(OperatorError):
    """Another replica may lead by now, so nothing may be written any more."""

    exit_code = 75


class ApiUnreachableError(OperatorError):
    """The API server gave no answer, for now."""

    exit_code = 69


class ApiError(OperatorError):
    """The API server answered with an error; the fields are those of metav1.Status."""

    exit_code = 69

    def __init__(self, request: str, *, code: int, status: dict[str, Any]) -> None:
        self.code = code
        self.message = str(status.get("message") or HTTPStatus(code).phrase)
        details = status.get("details") or {}
        self.causes = tuple(str(c.get("reason", "")) for c in details.get("causes") or ())
        self.retry_after = float(details.get("retryAfterSeconds") or 0.0)
        super().__init__(f"{request}: {code}: {self.message}")

    @property
    def is_gone(self) -> bool:
        """Whether a watch has to start from a new list, its resourceVersion being too old."""
        return self.code == HTTPStatus.GONE

    @property
    def is_missing(self) -> bool:
        """Whether the object, or its namespace, is not there."""
        return self.code == HTTPStatus.NOT_FOUND

    @property
    def is_conflict(self) -> bool:
        """Whether somebody else wrote first, or the object exists already."""
        return self.code == HTTPStatus.CONFLICT

    @property
    def is_refusal(self) -> bool:
        """Whether the same request will be refused until somebody changes something."""
        return self.code in {
            HTTPStatus.BAD_REQUEST,
            HTTPStatus.FORBIDDEN,
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            HTTPStatus.UNPROCESSABLE_ENTITY,
        }

    @property
    def namespace_ends(self) -> bool:
        """Whether the namespace is being deleted, and everything in it."""
        return "NamespaceTerminating" in self.causes
