"""Ends a run's processes when the command that started them is killed.

`python -m pretrainctl.local.warden MARK=VALUE` waits for the end of its standard input, the read
end of a pipe that only the command holds open, and then kills every process with the mark. The
kernel closes the pipe however the command ends, SIGKILL included.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Self

from pretrainctl.local.processes import kill_marked


class Warden:
    """The command's side: starts the process, and again if somebody kills it.

    Leave the context only when the run's processes have ended.
    """

    def __init__(self, name: str, value: str) -> None:
        self._mark = f"{name}={value}"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.ensure()
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def ensure(self) -> None:
        """Start the warden unless it runs."""
        if self._process is not None and self._process.poll() is None:
            return
        self.close()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__, self._mark],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            cwd=Path("/"),
            start_new_session=True,
        )

    def close(self) -> None:
        """Let the warden end, once the run's processes have."""
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
            self._process.wait()


def main() -> None:
    """Wait for the end of standard input, then kill."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    name, _, value = sys.argv[1].partition("=")
    while os.read(sys.stdin.fileno(), 1):
        pass
    kill_marked({name: value})


if __name__ == "__main__":
    main()
