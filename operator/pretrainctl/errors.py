"""How a command fails: an exception with one clear sentence and the exit code it ends with.

Only `pretrainctl.app.main` catches these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pretrainctl.exit_codes import ExitCode


class CommandError(Exception):
    """Base of all failures that the command line knows by name."""

    exit_code: ClassVar[ExitCode] = ExitCode.INVALID


class InvalidError(CommandError):
    """Usage, a manifest or a directory that cannot be used."""


class InvalidManifestError(InvalidError):
    """A manifest with problems, one line each, as `FILE:LINE:COLUMN: path: message`."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = tuple(problems)


class NotFoundError(CommandError):
    """A file, sample, job or log that was named does not exist."""

    exit_code = ExitCode.NOT_FOUND


class JobFailedError(CommandError):
    """The job cannot go on."""

    exit_code = ExitCode.JOB_FAILED


class UnreachableError(CommandError):
    """No cluster answered, or it could not answer."""

    exit_code = ExitCode.UNREACHABLE


class DeniedError(CommandError):
    """The cluster does not know who asks, or does not let them."""

    exit_code = ExitCode.DENIED


class InterruptedRunError(CommandError):
    """A signal asked the command to stop."""

    exit_code = ExitCode.INTERRUPTED
