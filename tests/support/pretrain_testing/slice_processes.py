"""What runs in the child processes of the preprocessing tests."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from pretrain_jobs.corpus import stage
from pretrain_jobs.errors import StorageFullError

TOLD_FULL, TOLD_OTHERWISE = 42, 43
"""Exit codes of `fill_disk`."""


def run_slice(config: Path, index: int) -> None:
    """Prepare one slice in this process."""
    os.environ["JOB_COMPLETION_INDEX"] = str(index)
    stage.main(config)


def fill_disk(config: Path, directory: Path) -> None:
    """Run a slice where no file may grow beyond 10 kB, and tell by exit code how it ended."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
    os.environ["TMPDIR"] = str(directory)
    try:
        run_slice(config, 5)
    except StorageFullError as error:
        os._exit(TOLD_FULL if "no space" in str(error) else TOLD_OTHERWISE)
