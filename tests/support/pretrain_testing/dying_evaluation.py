"""An evaluation stage that dies in the middle of its second fine-tuning."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from pretrain_jobs.evaluate import stage

from pretrain_testing.fork_server import CONTEXT, preload

preload("pretrain_jobs.evaluate.stage")


def run_and_die(config: Path) -> int | None:
    """Run the stage in a process of its own; that one's exit code."""
    process = CONTEXT.Process(target=_die_in_the_second_run, args=(config,))
    process.start()
    process.join()
    return process.exitcode


def _die_in_the_second_run(config: Path) -> None:
    untyped: Any = stage
    fine_tune, runs = untyped.fine_tune, []

    def dying(*arguments: Any, **options: Any) -> None:
        runs.append(options)
        if len(runs) == 2:
            options["progress"] = lambda: os.kill(os.getpid(), signal.SIGKILL)
        fine_tune(*arguments, **options)

    untyped.fine_tune = dying
    stage.main(config)
