"""One pod: a process in a session of its own, from its start to what it left behind."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

from pretrain_api.reports import TERMINATION_MESSAGE_LIMIT, StageProgress, StageReport
from pretrain_operator.observed import ObservedPod, PodPhase
from pydantic import BaseModel, ValidationError

from pretrainctl.local.job_policy import Try
from pretrainctl.local.pod_process import PodProcess
from pretrainctl.local.processes import kill_marked

LOG_TAIL_BYTES = 2048

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True)
class PodExit:
    """A pod's process ended; `returncode` is -n for signal n."""

    pod: str
    returncode: int


@dataclass
class Pod:
    """A started pod; the controller's only mutable record of it.

    `descriptor` is the pidfd of its first process: unlike a process id it never comes to mean
    another process.
    """

    name: str
    index: int
    started_at: datetime
    grace: timedelta
    log: Path
    process: PodProcess
    descriptor: int
    returncode: int | None = None
    finished_at: datetime | None = None
    kill_at: datetime | None = None
    disrupted: bool = False
    report: StageReport | None = None
    message: str = ""
    progress: StageProgress | None = None

    @property
    def active(self) -> bool:
        """Whether its process still runs."""
        return self.finished_at is None

    @property
    def ended_by(self) -> int | None:
        """The signal that ended it, if one did."""
        return -self.returncode if self.returncode is not None and self.returncode < 0 else None

    @property
    def exit_code(self) -> int | None:
        """As a container runtime tells it: 128 + n after signal n."""
        return 128 + self.ended_by if self.ended_by is not None else self.returncode

    def as_try(self) -> Try:
        """What the Job controller judges it by."""
        return Try(self.index, self.exit_code, self.finished_at, self.disrupted)

    def observed(self) -> ObservedPod:
        """What the plan sees of it."""
        ended: PodPhase = "Succeeded" if self.exit_code == 0 else "Failed"
        return ObservedPod(
            name=self.name,
            index=self.index,
            phase="Running" if self.active else ended,
            exit_code=self.exit_code,
            signal=self.ended_by,
            message=self.message,
            report=self.report,
            started_at=self.started_at,
            finished_at=self.finished_at,
            disrupted=self.disrupted,
            deleting=self.kill_at is not None,
        )

    def terminate(self, now: datetime) -> None:
        """Ask it to end (SIGTERM to its first process, as a kubelet does) within its grace."""
        if self.active and self.kill_at is None:
            self.kill_at = now + self.grace
            self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End its first process; the others end when that has been waited for."""
        if self.active:
            self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.descriptor, number)

    def poll_progress(self) -> StageProgress | None:
        """Its last progress, read again while it runs."""
        if self.active:
            self.progress = _read(StageProgress, self.process.progress_file) or self.progress
        return self.progress

    def finish(self, returncode: int, now: datetime) -> None:
        """Note its end, keep what it reported and give its scratch space back."""
        self.poll_progress()
        self.returncode = returncode
        self.finished_at = now
        self.report = _read_report(self.process.termination_log)
        if self.report is None:
            self.message = self._last_words()
        for directory in self.process.scratch:
            shutil.rmtree(directory, ignore_errors=True)
        os.close(self.descriptor)

    def _last_words(self) -> str:
        """What is no report but a message all the same; else the end of the log."""
        with suppress(OSError):
            if text := self.process.termination_log.read_text(errors="replace").strip():
                return text[:TERMINATION_MESSAGE_LIMIT]
        return read_tail(self.log)


def _read_report(path: Path) -> StageReport | None:
    """What others could mend is final here: the next process would have the same environment."""
    report = _read(StageReport, path)
    return report and report.model_copy(update={"mendable": False})


def start_pod(
    process: PodProcess,
    *,
    name: str,
    index: int,
    grace: timedelta,
    log: Path,
    now: datetime,
    on_exit: Callable[[PodExit], None],
) -> Pod:
    """Make its directories and files and start it.

    `on_exit` is called from another thread once every process of the pod has ended. Raises
    OSError when there is no room for its files.
    """
    for directory in process.directories:
        directory.mkdir(parents=True, exist_ok=True)
    for path, text in process.files.items():
        path.write_text(text, encoding="utf-8")
    with log.open("ab") as output:
        handle = subprocess.Popen(
            process.argv,
            env=process.env,
            cwd=process.directories[0],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    pod = Pod(name, index, now, grace, log, process, os.pidfd_open(handle.pid))
    wait = threading.Thread(target=_wait, args=(pod, handle, on_exit), daemon=True)
    wait.start()
    return pod


def read_tail(path: Path, limit: int = LOG_TAIL_BYTES) -> str:
    """The last bytes of a log, as text that begins with a whole line; empty if there is none."""
    with suppress(OSError), path.open("rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, size - limit))
        data = stream.read()
        if size > limit:
            data = data.partition(b"\n")[2] or data
        return data.decode(errors="replace").strip()
    return ""


def _wait(pod: Pod, handle: subprocess.Popen[bytes], on_exit: Callable[[PodExit], None]) -> None:
    returncode = handle.wait()
    kill_marked(pod.process.marks)
    on_exit(PodExit(pod.name, returncode))


def _read(model: type[ModelT], path: Path) -> ModelT | None:
    """A report or progress that is there as a whole, or None."""
    try:
        return model.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
