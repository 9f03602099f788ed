"""`pretrainctl local`: run a job on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pretrainctl.exit_codes import ExitCode
from pretrainctl.output import DataFormat, error_console, print_data, print_note, print_text

if TYPE_CHECKING:
    from pretrain_api.reports import StageName

    from pretrainctl.local.session import Session


def local(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A file with one PretrainJob.")],
    workdir: Annotated[
        Path,
        typer.Option("--workdir", "-w", metavar="DIR", help="Where the run keeps all it needs."),
    ],
    until: Annotated[
        str | None,
        typer.Option(
            metavar="STAGE",
            help="Stop after tokenizer, preprocess, train, evaluate or export.",
        ),
    ] = None,
    storage: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Use this storage (s3://, file:// or a directory)."),
    ] = None,
    output: Annotated[
        DataFormat | None, typer.Option("--output", "-o", help="Print the finished job as data.")
    ] = None,
) -> None:
    """Run a PretrainJob on this machine, without a cluster.

    The same stages run as on a cluster, as processes. The job with its status is in
    DIR/pretrainjob.yaml, the model in DIR/export, what the stages print in DIR/logs.

    Ctrl-C stops everything within 5 seconds. The same command goes on from the newest
    checkpoint, also after a crash, a kill or a failure that you mended; once the job is
    complete it does nothing. A changed file is a new job that uses finished stages again.
    """
    from pretrainctl.local.session import run_session, with_storage
    from pretrainctl.manifest_file import read_one_job

    stage = _stage(until)
    wanted = with_storage(read_one_job(file), storage)
    session = run_session(wanted, workdir, until=stage, console=error_console())
    if output is not None:
        from pretrainctl.local.job_file import job_as_data

        print_data(job_as_data(session.job), output)
    else:
        _report(session)
    if session.failed:
        _report_failure(session)
        raise typer.Exit(ExitCode.JOB_FAILED)


def _stage(until: str | None) -> StageName | None:
    from pretrain_api.reports import STAGES

    stage = next((name for name in STAGES if name == until), None)
    if until is not None and stage is None:
        raise typer.BadParameter(f"{until!r} is none of {', '.join(STAGES)}", param_hint="--until")
    return stage


def _report(session: Session) -> None:
    from pretrainctl.local.summary import read_training, summary

    if session.complete:
        training = read_training(session.results.training_file)
        print_text(summary(session.job, export=session.results.workdir.export, training=training))


def _report_failure(session: Session) -> None:
    print_note(f"job {session.job.metadata.name} failed: {session.job.status.blocked_by}")
    if session.log is not None:
        print_note(f"its last words are in {session.log}")
    print_note("once that is put right, the same command goes on from the newest checkpoint")
