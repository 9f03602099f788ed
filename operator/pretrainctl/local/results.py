"""What a complete job hands over: the export as a directory, and the curve of its training.

A process copies them, since only pretrain_jobs knows the stores.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from pretrain_api.job import PretrainJob
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.status import StageStatus

from pretrainctl.errors import InterruptedRunError, JobFailedError
from pretrainctl.local.pod import Pod, read_tail, start_pod
from pretrainctl.local.pod_process import PodProcess, inherited_environment
from pretrainctl.local.processes import POD_MARK, WORKDIR_MARK
from pretrainctl.local.runner import Clock
from pretrainctl.local.wakeups import Wakeups
from pretrainctl.local.workdir import WorkDir

TRAINING_FILE = "training.json"
"""The model artifact's file with hyperparameters and curve (pretrain_jobs.train.finish)."""


@dataclass(frozen=True)
class Results:
    """Copies artifacts of one job; nothing is done for those that are there already.

    `fetch` raises JobFailedError with the copying process's last words, and InterruptedRunError
    after a signal.
    """

    job: PretrainJob
    workdir: WorkDir
    wakeups: Wakeups
    clock: Clock

    def fetch(self) -> None:
        """DIR/export, and the training curve for the summary, which does without if need be."""
        source, target = self.job.status.export_uri, self.workdir.export
        if trouble := self._pull("pull-export", [source, str(target)]):
            raise JobFailedError(f"{source} cannot be copied to {target}: {trouble}")
        if not self.training_file.is_file():
            arguments = [self._train.uri, str(self.training_file.parent)]
            self._pull("pull-curve", [*arguments, "--kind", "model", "--only", TRAINING_FILE])

    @property
    def training_file(self) -> Path:
        """Where the curve lies once it was fetched."""
        return self.workdir.results / self._train.fingerprint / TRAINING_FILE

    @property
    def _train(self) -> StageStatus:
        return next(stage for stage in self.job.status.stages if stage.name == "train")

    def _pull(self, name: str, arguments: Sequence[str]) -> str:
        """Copy, and return the last words of a process that failed."""
        log = self.workdir.log(name)
        try:
            log.unlink(missing_ok=True)
            pod = start_pod(
                self._process(name, arguments),
                name=name,
                index=0,
                grace=timedelta(0),
                log=log,
                now=self.clock(),
                on_exit=self.wakeups.pod_ended,
            )
        except OSError as error:
            raise JobFailedError(f"{log} cannot be written: {error.strerror}") from None
        self._wait(pod)
        if self.wakeups.stops:
            raise InterruptedRunError("stopped; the same command copies the results again")
        if pod.exit_code == 0:
            return ""
        return read_tail(log).rpartition("\n")[2] or f"exit code {pod.exit_code}"

    def _wait(self, pod: Pod) -> None:
        while pod.active:
            if self.wakeups.stops:
                pod.kill()
            for ended in self.wakeups.wait(None):
                pod.finish(ended.returncode, self.clock())

    def _process(self, name: str, arguments: Sequence[str]) -> PodProcess:
        storage = self.job.spec.storage or StorageSpec(uri=self.workdir.storage_uri)
        marks = {WORKDIR_MARK: str(self.workdir.root), POD_MARK: name}
        directory = self.workdir.pods / name
        command = (sys.executable, "-m", "pretrain_jobs", "pull", *arguments)
        return PodProcess(
            argv=(*command, "--storage", storage.model_dump_json(by_alias=True)),
            env={**inherited_environment(os.environ), **marks},
            directories=(directory,),
            scratch=(directory,),
            marks=marks,
            files={},
            termination_log=directory / "termination-log",
            progress_file=directory / "progress.json",
        )
