"""One `pretrainctl local` from file to finished model: everything but the command line itself."""

from __future__ import annotations

import os
import secrets
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageName
from pretrain_api.status import Phase
from pretrain_operator.observed import Settings
from rich.console import Console

from pretrainctl.errors import InvalidError
from pretrainctl.local.continuation import Continuation, Start, continue_or_start
from pretrainctl.local.controller import Controller
from pretrainctl.local.job_file import JobFile
from pretrainctl.local.processes import WORKDIR_MARK
from pretrainctl.local.results import Results
from pretrainctl.local.runner import Runner
from pretrainctl.local.view import open_view
from pretrainctl.local.wakeups import Wakeups
from pretrainctl.local.warden import Warden
from pretrainctl.local.workdir import WorkDir, open_workdir
from pretrainctl.storage_option import with_storage_uri

NOTES: dict[Start, str] = {
    "new": "job {name} starts in {root}",
    "changed": "another job or spec than before in {root}: job {name} starts anew; "
    "finished stages in the storage are used again",
    "continued": "job {name} goes on in {root}",
    "reopened": "job {name} failed before ({reason}): it is run again, with full restart "
    "budgets and from its newest checkpoint",
    "complete": "job {name} in {root} is complete already: nothing to do",
}


@dataclass(frozen=True)
class Session:
    """How a run ended; `log` is that of the pod that failed last."""

    job: PretrainJob
    results: Results
    log: Path | None

    @property
    def failed(self) -> bool:
        """Whether the job failed."""
        return self.job.status.phase == Phase.FAILED

    @property
    def complete(self) -> bool:
        """Whether the job is complete."""
        return self.job.status.phase == Phase.COMPLETE


def run_session(
    wanted: PretrainJob, path: Path, *, until: StageName | None, console: Console
) -> Session:
    """Run a job in a directory until it ends; `console` shows how it goes.

    Raises InvalidError for a directory that cannot be used, JobFailedError when the run itself
    cannot go on, and InterruptedRunError after a signal.
    """
    if wanted.spec.suspend:
        raise InvalidError("spec.suspend is true, so nothing would run: set it to false")
    wakeups = Wakeups()
    with (
        open_workdir(path) as workdir,
        wakeups.on_signals(),
        Warden(WORKDIR_MARK, str(workdir.root)) as warden,
    ):
        file = JobFile(workdir)
        saved = file.load()
        begun = continue_or_start(wanted, saved, now=now(), new_uid=str(uuid4()))
        runner = Runner(
            job=begun.job,
            file=file,
            controller=Controller(
                workdir,
                caller=os.environ,
                clock=now,
                token=lambda: secrets.token_hex(4),
                on_exit=wakeups.pod_ended,
            ),
            wakeups=wakeups,
            warden=warden,
            settings=local_settings(workdir),
            clock=now,
            until=until,
        )
        with open_view(console, begun.job, now) as view:
            view.note(_note(begun, saved, workdir))
            job = begun.job if begun.start == "complete" else runner.run(view)
            results = Results(job, workdir, wakeups, now)
            if job.status.phase == Phase.COMPLETE:
                results.fetch()
        failure = runner.controller.last_failure
        return Session(job, results, failure.log if failure else None)


def local_settings(workdir: WorkDir) -> Settings:
    """What the plan is told of this machine: all pods share its network and this interpreter."""
    return Settings(
        python=sys.executable, shared_network=True, default_storage_uri=workdir.storage_uri
    )


def with_storage(job: PretrainJob, storage: str | None) -> PretrainJob:
    """The job with another storage: a URI, or a directory of this machine."""
    if storage is None:
        return job
    uri = storage if "://" in storage else Path(storage).expanduser().resolve().as_uri()
    return with_storage_uri(job, uri)


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(UTC)


def _note(begun: Continuation, saved: PretrainJob | None, workdir: WorkDir) -> str:
    reason = saved.status.blocked_by.rstrip(".") if saved else ""
    return NOTES[begun.start].format(
        name=begun.job.metadata.name, root=workdir.root, reason=reason or "no reason is known"
    )
