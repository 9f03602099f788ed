"""How often a cause may restart an attempt, and how long to wait before; pure arithmetic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from pretrain_api.reports import Cause
from pretrain_api.spec.lifecycle import BackoffSpec, FailurePolicySpec

from pretrain_operator.plan.pod_failures import Failure

BUDGETS: dict[Cause, int | None] = {
    Cause.USER_ERROR: 0,
    Cause.DATA_ERROR: 0,
    Cause.CHECKPOINT_UNUSABLE: 0,
    Cause.ADMISSION_DENIED: 0,
    Cause.NO_PROGRESS: 0,
    Cause.NON_FINITE: 2,
    Cause.IMAGE_PULL: 2,
    Cause.OUT_OF_MEMORY: 3,
    Cause.HANG: 3,
    Cause.UNKNOWN: 3,
    Cause.INFRASTRUCTURE: 10,
    Cause.STORAGE_UNAVAILABLE: 10,
    Cause.QUOTA: None,
    Cause.PREEMPTED: None,
}
"""Restarts by cause over a job's life; None has no limit."""

UNLIMITED = frozenset({Cause.PREEMPTED})
"""Causes that no failurePolicy limits: they are not the job's fault."""

OUTSIDE_TRAINING = frozenset(
    {Cause.PREEMPTED, Cause.QUOTA, Cause.IMAGE_PULL, Cause.STORAGE_UNAVAILABLE}
)
"""Causes that say nothing on whether training advances: without a place, storage or an image, no
attempt can commit, and their own budgets bound them."""


@dataclass(frozen=True)
class Exhausted:
    """Why there is no further attempt: the reason of the Failed condition, and a sentence."""

    reason: Cause
    sentence: str


def limit_of(cause: Cause, policy: FailurePolicySpec) -> int | None:
    """The restarts that a cause may have; the policy's word counts where it has one."""
    if cause in UNLIMITED:
        return None
    own = [budget.limit for budget in policy.restarts if budget.cause == cause]
    return own[-1] if own else BUDGETS[cause]


def exhausted(
    failure: Failure,
    *,
    restarts: Mapping[str, int],
    no_progress: int,
    policy: FailurePolicySpec,
) -> Exhausted | None:
    """Why a failed attempt is the last one; None when another may follow.

    `no_progress` counts this attempt already. A cause's own budget speaks before NoProgress.
    """
    cause, used = failure.cause, restarts.get(failure.cause.value, 0)
    limit = limit_of(cause, policy)
    if not failure.retryable or limit == 0:
        return Exhausted(cause, failure.sentence)
    if limit is not None and used >= limit:
        return Exhausted(cause, f"After {used} restarts, the most for it: {failure.sentence}")
    if no_progress >= policy.no_progress_restarts:
        return Exhausted(
            Cause.NO_PROGRESS,
            f"{no_progress} restarts in a row brought no newer checkpoint; "
            f"the last attempt ended with {cause.value}: {failure.sentence}",
        )
    return None


def count_no_progress(before: int, *, attempt: int, progressed: bool, cause: Cause) -> int:
    """Restarted attempts in a row without a newer commit; the first attempt is no restart."""
    if progressed:
        return 0
    return before if attempt == 0 or cause in OUTSIDE_TRAINING else before + 1


def backoff(restart: int, *, cause: Cause, policy: BackoffSpec) -> timedelta:
    """The wait before a cause's n-th restart: initial * 2^(n-1), at most the maximum.

    A preempted attempt waits the initial time only, however often: the scheduler queues it.
    """
    doublings = 0 if cause in UNLIMITED else min(restart - 1, 32)
    seconds = min(policy.initial_seconds * 2**doublings, policy.maximum_seconds)
    return timedelta(seconds=seconds)
