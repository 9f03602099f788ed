"""Exit codes of the command line: stable, so that scripts may depend on them."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a command's end means."""

    DONE = 0
    """The command did what it was asked to do."""

    JOB_FAILED = 1
    """The job ran and failed, or its state could not be kept."""

    INVALID = 2
    """Usage, a manifest, or a directory that cannot be used."""

    NOT_FOUND = 3
    """A file, a sample, a job or a log that was named does not exist."""

    UNREACHABLE = 4
    """No cluster answered."""

    DENIED = 5
    """The cluster does not let this user look."""

    INTERRUPTED = 130
    """Stopped by Ctrl-C or SIGTERM; the same command goes on from there."""
