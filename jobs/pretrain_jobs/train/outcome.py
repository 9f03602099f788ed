"""From how each rank ended to why the attempt did: pure, so that every combination is tested.

One rank's failure brings the others down with errors of their own. The answer is the most
specific cause, and of several equal ones the earliest.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass

from pretrain_api.reports import Cause, CheckpointStatus, StageReport

from pretrain_jobs.errors import (
    CheckpointUnusableError,
    DataError,
    HangError,
    InfrastructureError,
    NonFiniteError,
    OutOfMemoryError,
    PreemptedError,
    StageError,
    StorageDeniedError,
    StorageRefusedError,
    StorageUnavailableError,
    UserError,
)

_SPECIFICITY = (
    Cause.USER_ERROR,
    Cause.DATA_ERROR,
    Cause.CHECKPOINT_UNUSABLE,
    Cause.STORAGE_UNAVAILABLE,
    Cause.NON_FINITE,
    Cause.OUT_OF_MEMORY,
    Cause.HANG,
    Cause.UNKNOWN,
    Cause.INFRASTRUCTURE,
    Cause.PREEMPTED,
)
"""Causes from the one that explains most to those that another rank's failure brings about."""

_ERRORS: dict[Cause, type[StageError]] = {
    kind.cause: kind
    for kind in (
        UserError,
        DataError,
        CheckpointUnusableError,
        StorageUnavailableError,
        NonFiniteError,
        OutOfMemoryError,
        HangError,
        InfrastructureError,
        PreemptedError,
    )
}

_NOTHING_TO_SAVE = "stopped by SIGTERM before training began"


@dataclass(frozen=True)
class RankEnding:
    """How one rank of this node ended.

    `exit_code` is negative for a signal and 0 for success; `time` is in seconds since some point;
    `report` is None if the process could not write one.
    """

    rank: int
    exit_code: int = 0
    time: float = 0.0
    report: StageReport | None = None


def explain(
    endings: Sequence[RankEnding], *, stopped: bool, out_of_memory: bool
) -> StageError | None:
    """The error that the ranks' endings come down to; None when all succeeded.

    It has the newest checkpoint that any of them told.
    `stopped` tells that this node was asked to stop, `out_of_memory` that the kernel killed
    processes of this container meanwhile.
    """
    failed = [ending for ending in endings if ending.exit_code or _cause(ending) is not None]
    if not failed:
        return None
    error = (_preempted(failed) if stopped else None) or _first(failed, out_of_memory=out_of_memory)
    if stopped and error.cause is Cause.INFRASTRUCTURE and any(map(_obeyed, failed)):
        error = PreemptedError(_NOTHING_TO_SAVE)
    error.checkpoint = _newest_checkpoint(endings)
    return error


def explain_agent(code: int, *, stopped: bool, out_of_memory: bool) -> StageError | None:
    """The error of an agent that ended with a code and told of no rank; None for 0."""
    if code == 0:
        return None
    if stopped:
        return PreemptedError(_NOTHING_TO_SAVE)
    if out_of_memory and code == -signal.SIGKILL:
        return OutOfMemoryError(
            "torchrun was killed (SIGKILL) because the container reached its memory limit: raise "
            "spec.workers.resources.limits"
        )
    return InfrastructureError(f"torchrun ended with exit code {code}; see the log")


def error_of(report: StageReport) -> StageError:
    """The error that a report tells of, with its rank."""
    kind = _ERRORS.get(report.cause or Cause.UNKNOWN, StageError)
    if report.cause is Cause.STORAGE_UNAVAILABLE and not report.retryable:
        kind = StorageDeniedError if report.mendable else StorageRefusedError
    where = f"rank {report.rank}: " if report.rank is not None else ""
    return kind(f"{where}{report.message}")


def _first(failed: Sequence[RankEnding], *, out_of_memory: bool) -> StageError:
    """The error that explains the others."""
    errors = [(ending, _error(ending, out_of_memory=out_of_memory)) for ending in failed]
    _, error = min(errors, key=lambda pair: _order(*pair))
    return error


def _newest_checkpoint(endings: Sequence[RankEnding]) -> CheckpointStatus | None:
    results = [e.report.result for e in endings if e.report is not None and e.report.result]
    told = [result.checkpoint for result in results if result.checkpoint is not None]
    return max(told, key=lambda checkpoint: checkpoint.step, default=None)


def _preempted(failed: Sequence[RankEnding]) -> StageError | None:
    """What a rank says that stopped as it was asked to; its peers then lose it."""
    told = [e.report for e in failed if e.report and e.report.cause is Cause.PREEMPTED]
    return error_of(told[0]) if told else None


def _obeyed(ending: RankEnding) -> bool:
    """Whether a rank was ended by the SIGTERM that it was sent, having nothing to save."""
    return ending.exit_code == -signal.SIGTERM


def _cause(ending: RankEnding) -> Cause | None:
    return ending.report.cause if ending.report else None


def _error(ending: RankEnding, *, out_of_memory: bool) -> StageError:
    if ending.report is not None and ending.report.cause is not None:
        return error_of(ending.report)
    if ending.exit_code >= 0:
        return StageError(
            f"rank {ending.rank} ended with exit code {ending.exit_code} and no report; its last "
            "lines are in the log"
        )
    name = signal.Signals(-ending.exit_code).name
    if out_of_memory and -ending.exit_code == signal.SIGKILL:
        return OutOfMemoryError(
            f"rank {ending.rank} was killed ({name}) because the container reached its memory "
            "limit: raise it, or lower spec.training.microBatchSize"
        )
    return InfrastructureError(f"rank {ending.rank} was ended by {name}")


def _order(ending: RankEnding, error: StageError) -> tuple[int, float, bool, int]:
    """Specific causes first, then the earliest; a rank that was killed explains its peers' loss."""
    told = ending.report is not None
    killed = not told and ending.exit_code == -signal.SIGKILL
    cause = Cause.UNKNOWN if killed and error.cause is Cause.INFRASTRUCTURE else error.cause
    return (_SPECIFICITY.index(cause), ending.time, told, ending.rank)
