"""torchrun in a process of its own, that tells how each of its workers ended.

`python -m pretrain_jobs.train.agent LAUNCHER_PID ENDINGS_FILE TORCHRUN_ARGUMENT...` runs
`torch.distributed.run` with the arguments and dies with its launcher. When workers fail it writes
their exit codes (negative for a signal) by rank as JSON. What the endings mean is decided by the
launcher.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pretrain_jobs.train.lifeline import AGENT_PID_ENV, die_with_parent


def main(arguments: list[str]) -> int:
    """Run torchrun; 0 if every worker succeeded, 1 if one failed, 2 if they never met."""
    launcher, endings = int(arguments[0]), Path(arguments[1])
    die_with_parent(launcher)
    os.environ[AGENT_PID_ENV] = str(os.getpid())
    from torch.distributed import DistError
    from torch.distributed.elastic.multiprocessing import SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import parse_args, run

    try:
        run(parse_args(arguments[2:]))  # type: ignore[no-untyped-call]
    except ChildFailedError as error:
        told = {
            str(rank): {"exitCode": failure.exitcode, "time": failure.timestamp}
            for rank, failure in error.failures.items()
        }
        endings.write_text(json.dumps(told))
        return 1
    except SignalException:
        return 1
    except DistError as error:
        print(f"rendezvous failed: {error}", file=sys.stderr, flush=True)  # noqa: T201
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
