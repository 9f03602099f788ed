"""The bed's processes: started in the background, found again by later commands, ended.

Each is recorded in the state folder by its id and start time. All carry marks in their environment
as well, so that those of a bed whose folder or record is lost are found and ended too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from pretrainctl.local.processes import Marks, kill_marked, marked_processes

from bed.errors import BedError
from bed.profile import Profile

PROFILE_MARK = "PRETRAIN_BED"
STATE_MARK = "PRETRAIN_BED_STATE"
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Part:
    """One process of the bed."""

    name: str
    command: tuple[str, ...]
    healthy: Callable[[], bool]
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[Path, str] = field(default_factory=dict)
    """What is written before it starts: path to content."""
    ready_seconds: float = 120.0
    """How long it may take to become healthy; far more than it does on a busy machine."""


def start(bed: Profile, part: Part) -> None:
    """Start a part and wait until it is healthy; BedError with its log's end when it is not."""
    process = _spawn(part, bed.state, log_of(bed, part.name), marks_of(bed))
    _record(bed, part.name, process.pid)
    _wait_until_healthy(part, process, log_of(bed, part.name))


@contextmanager
def part_running(folder: Path, part: Part) -> Iterator[None]:
    """Run a part that belongs to no bed, in a folder, while the context lasts.

    One that an interrupted run has left there is ended first.
    """
    log = folder / f"{part.name}.log"
    marks = {PROFILE_MARK: part.name, STATE_MARK: str(folder)}
    kill_marked(marks)
    process = _spawn(part, folder, log, marks)
    try:
        _wait_until_healthy(part, process, log)
        yield
    finally:
        process.terminate()
        process.wait()


def running(bed: Profile, name: str) -> int | None:
    """The id of a part's process, or None when it does not run."""
    try:
        record = json.loads(_record_of(bed, name).read_text())
        process = psutil.Process(record["pid"])
        alive = process.status() != psutil.STATUS_ZOMBIE
        same = process.create_time() == record["started"]
    except (OSError, ValueError, psutil.Error):
        return None
    return process.pid if alive and same else None


def stop(bed: Profile, name: str, *, sign: signal.Signals = signal.SIGKILL) -> None:
    """End a part and wait for its end; nothing happens when it does not run."""
    pid = running(bed, name)
    if pid is None:
        return
    os.kill(pid, sign)
    with suppress(psutil.Error):
        psutil.Process(pid).wait(timeout=60)


def kill_all(bed: Profile) -> int:
    """End all processes that any bed of this name left on the machine; how many there were."""
    return kill_marked(_profile_marks(bed))


def all_of(bed: Profile) -> list[int]:
    """Ids of all living processes that a bed of this name has on the machine."""
    return marked_processes(_profile_marks(bed))


def other_states(bed: Profile) -> set[str]:
    """State folders of beds of the same name that other checkouts have up."""
    found = {_state_of(pid) for pid in all_of(bed)}
    return {state for state in found if state and state != str(bed.state)}


def log_of(bed: Profile, name: str) -> Path:
    """Where a part writes."""
    return bed.state / "logs" / f"{name}.log"


def marks_of(bed: Profile) -> dict[str, str]:
    """Environment variables by which a process is found to be this bed's."""
    return {PROFILE_MARK: bed.name, STATE_MARK: str(bed.state)}


def _profile_marks(bed: Profile) -> Marks:
    return {PROFILE_MARK: bed.name}


def _spawn(part: Part, folder: Path, log: Path, marks: Marks) -> subprocess.Popen[bytes]:
    """Nothing of the user's reaches it: no proxies, no credentials, no other cluster."""
    log.parent.mkdir(parents=True, exist_ok=True)
    for path, content in part.files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    environment = {"PATH": SEARCH_PATH, "HOME": str(folder), **marks, **part.environment}
    with log.open("ab") as output:
        return subprocess.Popen(
            part.command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )


def _wait_until_healthy(part: Part, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + part.ready_seconds
    while not part.healthy():
        if process.poll() is not None:
            raise BedError(f"{part.name} ended {process.returncode}:\n{_end_of(log)}")
        if time.monotonic() > deadline:
            raise BedError(f"{part.name} is not healthy after {part.ready_seconds:g} s: {log}")
        time.sleep(_POLL_SECONDS)


def _state_of(pid: int) -> str | None:
    with suppress(psutil.Error):
        return psutil.Process(pid).environ().get(STATE_MARK)
    return None


def _record_of(bed: Profile, name: str) -> Path:
    return bed.state / "processes" / f"{name}.json"


def _record(bed: Profile, name: str, pid: int) -> None:
    record = _record_of(bed, name)
    record.parent.mkdir(parents=True, exist_ok=True)
    with suppress(psutil.NoSuchProcess):
        record.write_text(json.dumps({"pid": pid, "started": psutil.Process(pid).create_time()}))


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:]
