"""Counts of S3 requests and retries of this process, for whoever exports metrics."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.hooks import BaseEventHooks

_lock = threading.Lock()
_requests: Counter[tuple[str, str]] = Counter()
_retries: Counter[str] = Counter()


@dataclass(frozen=True)
class RequestCounts:
    """Answers so far by (operation, HTTP status or error's name), and how many were retries."""

    requests: dict[tuple[str, str], int]
    retries: int


def request_counts() -> RequestCounts:
    """A snapshot of this process's counts."""
    with _lock:
        return RequestCounts(requests=dict(_requests), retries=_retries.total())


def count_requests(events: BaseEventHooks) -> None:
    """Count every try of every request of the client that these events belong to."""
    events.register("response-received.s3", _count_answer)
    events.register("request-created.s3", _count_retry)


def _count_answer(
    event_name: str,
    response_dict: dict[str, Any] | None = None,
    exception: Exception | None = None,
    **_: Any,
) -> None:
    operation = event_name.rpartition(".")[2]
    code = str(response_dict["status_code"]) if response_dict else type(exception).__name__
    with _lock:
        _requests[operation, code] += 1


def _count_retry(request: Any, operation_name: str, **_: Any) -> None:
    if request.context.get("retries", {}).get("attempt", 1) > 1:
        with _lock:
            _retries[operation_name] += 1
