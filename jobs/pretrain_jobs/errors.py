"""The one way a stage fails: an exception with its cause, which decides the exit code.

A message says what was found, where, what was expected and what to do. Only a process's top
(`pretrain_jobs.__main__`) catches these.
"""

from __future__ import annotations

from typing import ClassVar

from pretrain_api.reports import EXIT_CODES, Cause, CheckpointStatus


class StageError(Exception):
    """Base of all failures that a stage knows by name."""

    cause: ClassVar[Cause] = Cause.UNKNOWN
    retryable: ClassVar[bool] = True
    mendable: ClassVar[bool] = False
    """Whether what will not change by itself may be changed by others, the job being as it is."""

    checkpoint: CheckpointStatus | None = None
    """The newest commit of a training that ends so, which whoever has it sets."""

    @property
    def exit_code(self) -> int:
        """Exit code of the process that ends with this error."""
        return EXIT_CODES[self.cause]


class UserError(StageError):
    """The configuration, or code of the user's, cannot work."""

    cause = Cause.USER_ERROR
    retryable = False


class DataError(StageError):
    """The input cannot be used: empty, of another kind, or with too many bad records."""

    cause = Cause.DATA_ERROR
    retryable = False


class StorageUnavailableError(StageError):
    """The storage does not answer, for now."""

    cause = Cause.STORAGE_UNAVAILABLE


class StorageRefusedError(StageError):
    """The storage answers, and its answer will not change by itself."""

    cause = Cause.STORAGE_UNAVAILABLE
    retryable = False


class StorageDeniedError(StorageRefusedError):
    """The storage turns down whoever asks: others correct credentials, rights or certificates."""

    mendable = True


class StorageFullError(StageError):
    """No space is left on a local disk or mounted volume."""

    cause = Cause.STORAGE_UNAVAILABLE
    retryable = False


class CheckpointUnusableError(StageError):
    """Committed checkpoints exist and none of them verifies."""

    cause = Cause.CHECKPOINT_UNUSABLE
    retryable = False


class NonFiniteError(StageError):
    """Too many steps in a row had a non-finite loss or gradient."""

    cause = Cause.NON_FINITE


class InfrastructureError(StageError):
    """A peer, node or device failed."""

    cause = Cause.INFRASTRUCTURE


class PreemptedError(StageError):
    """The process was asked to stop."""

    cause = Cause.PREEMPTED


class OutOfMemoryError(StageError):
    """A process reached its memory limit."""

    cause = Cause.OUT_OF_MEMORY


class HangError(StageError):
    """A process makes no progress although nothing failed."""

    cause = Cause.HANG
