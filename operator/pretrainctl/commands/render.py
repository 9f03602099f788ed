"""`pretrainctl render`: the children that the operator would make of a job."""

from __future__ import annotations

from typing import Annotated

import typer

from pretrainctl.output import DataFormat, print_data, print_note

PLACEHOLDER_STORAGE = "s3://default-storage"


def render(
    file: Annotated[str, typer.Argument(metavar="FILE", help="YAML or JSON; - is standard input.")],
    storage: Annotated[
        str | None,
        typer.Option(metavar="URI", help="Default storage of the cluster, if the job names none."),
    ] = None,
    output: Annotated[DataFormat, typer.Option("--output", "-o")] = DataFormat.YAML,
) -> None:
    """Print the ConfigMaps, Services and Jobs of a PretrainJob, without a cluster.

    Shown is each stage's first attempt. Fingerprints, which only a run can tell, are zeros, and
    preprocessing has one slice.
    """
    from pretrain_operator.children.render import render as render_children
    from pretrain_operator.observed import Settings

    from pretrainctl.manifest_file import read_jobs
    from pretrainctl.storage_option import with_storage_uri

    children = []
    for job in read_jobs(file):
        if storage is not None:
            with_storage_uri(job, storage)
        if job.spec.storage is None and storage is None:
            print_note(
                f"{job.metadata.name} names no storage: shown with {PLACEHOLDER_STORAGE}; "
                "give the cluster's default with --storage"
            )
        settings = Settings(default_storage_uri=storage or PLACEHOLDER_STORAGE)
        children += render_children(job, settings)
    print_data(children, output)
