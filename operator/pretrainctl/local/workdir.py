"""The directory of a local run: what lies where in it, and that one command at a time uses it.

```
DIR/pretrainjob.yaml   the job with its status; the only thing a later run needs
DIR/storage/           datasets, checkpoints, models (unless spec.storage says otherwise)
DIR/export/            the finished model
DIR/logs/POD.log       output of each pod
DIR/.pretrainctl/      the lock, the pods' volumes (config included) and their /tmp, and what
                       training leaves on spec.checkpoint.localVolume
```
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pretrainctl.errors import InvalidError
from pretrainctl.local.processes import WORKDIR_MARK, kill_marked

TEMPORARY_PREFIX = "pretrain-"
"""Of directories in the system's temporary one, used where a path below DIR is too long."""


@dataclass(frozen=True)
class WorkDir:
    """Paths under one absolute root."""

    root: Path

    @property
    def job_file(self) -> Path:
        """The job with its status."""
        return self.root / "pretrainjob.yaml"

    @property
    def private(self) -> Path:
        """What no user looks for; pods and temporary files in it go at each start."""
        return self.root / ".pretrainctl"

    @property
    def lock_file(self) -> Path:
        """Locked while a command uses the directory; holds that command's process id."""
        return self.private / "lock"

    @property
    def storage_uri(self) -> str:
        """Storage of a job whose spec names none."""
        return (self.root / "storage").as_uri()

    @property
    def logs(self) -> Path:
        """Output of the pods."""
        return self.root / "logs"

    def log(self, pod: str) -> Path:
        """Output of one pod."""
        return self.logs / f"{pod}.log"

    @property
    def pods(self) -> Path:
        """Volumes of the pods."""
        return self.private / "pods"

    @property
    def temporary(self) -> Path:
        """Temporary files of the pods; paths are short, as sockets may lie in it."""
        return self.private / "tmp"

    @property
    def local_checkpoints(self) -> Path:
        """What stands for the volume of `spec.checkpoint.localVolume`, whichever it names."""
        return self.private / "local-checkpoints"

    @property
    def results(self) -> Path:
        """Copies of small files of artifacts, for the summary."""
        return self.private / "results"

    @property
    def export(self) -> Path:
        """The finished model."""
        return self.root / "export"


@contextmanager
def open_workdir(path: Path) -> Iterator[WorkDir]:
    """Make the directory if need be and hold it; InvalidError says why it cannot be used.

    Whoever holds the lock is alone, so processes left by an earlier run are ended here.
    """
    workdir = WorkDir(path.expanduser().resolve())
    try:
        workdir.private.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(workdir.lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise InvalidError(
            f"{path} cannot be used as a working directory: {error.strerror}; "
            "choose another one with --workdir"
        ) from None
    try:
        _lock(descriptor, path)
        kill_marked({WORKDIR_MARK: str(workdir.root)})
        _clear(workdir)
        yield workdir
    finally:
        os.close(descriptor)


def _lock(descriptor: int, path: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip() or "unknown"
        raise InvalidError(
            f"{path} is in use by another pretrainctl (process {holder}); "
            "wait for it, stop it, or choose another --workdir"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def _clear(workdir: WorkDir) -> None:
    """Make the empty places that a run needs; volumes of an earlier run are of no use."""
    try:
        for link in workdir.temporary.glob("*"):
            if link.is_symlink() and link.readlink().name.startswith(TEMPORARY_PREFIX):
                shutil.rmtree(link.readlink(), ignore_errors=True)
        for directory in (workdir.temporary, workdir.pods):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(exist_ok=True)
        workdir.logs.mkdir(exist_ok=True)
    except OSError as error:
        raise InvalidError(f"{error.filename} cannot be made: {error.strerror}") from None
