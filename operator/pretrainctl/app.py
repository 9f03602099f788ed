"""The command line's entry point: commands are listed here, errors become exit codes here.

Command modules are light; what a command needs is imported when it runs, so that the shell
starts fast.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pretrainctl.commands.crd import crd
from pretrainctl.commands.describe import describe
from pretrainctl.commands.local import local
from pretrainctl.commands.logs import logs
from pretrainctl.commands.render import render
from pretrainctl.commands.samples import samples
from pretrainctl.commands.validate import validate
from pretrainctl.errors import CommandError
from pretrainctl.output import print_note, print_text

FIRST_STEPS = """\
First steps:

`pretrainctl samples show quickstart > job.yaml`

`pretrainctl samples data quickstart --to run/storage`

`pretrainctl local job.yaml --workdir run`

On a cluster: `pretrainctl describe NAME`, `pretrainctl logs NAME`

Exit codes: 0 done, 1 the job failed, 2 usage or invalid input, 3 not found, 4 no cluster answers,
5 not allowed, 130 interrupted.
"""

app = typer.Typer(
    name="pretrainctl",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=FIRST_STEPS,
)
app.command(epilog="Example: pretrainctl local job.yaml --workdir run --until preprocess")(local)
app.command(epilog="Example: pretrainctl validate job.yaml && kubectl apply -f job.yaml")(validate)
app.command(epilog="Example: pretrainctl render job.yaml --storage s3://models")(render)
app.command(epilog="Example: pretrainctl describe quickstart -n team-a")(describe)
app.command(epilog="Example: pretrainctl logs quickstart -n team-a --stage train --all -f")(logs)
app.add_typer(samples)
app.command(epilog="Example: pretrainctl crd | kubectl apply -f -")(crd)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print_text(f"pretrainctl {version('pretrain-operator')}")
        raise typer.Exit


@app.callback()
def pretrainctl(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print it."),
    ] = False,
) -> None:
    """Validate, render and run PretrainJobs: from raw text to an evaluated language model."""


def main() -> None:
    """Run a command; an error that it knows by name is one clear sentence, never a traceback."""
    try:
        app(prog_name="pretrainctl")
    except CommandError as error:
        print_note(f"pretrainctl: {error}")
        sys.exit(error.exit_code)
