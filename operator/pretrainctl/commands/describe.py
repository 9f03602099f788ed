"""`pretrainctl describe`: why a job on a cluster does not run, and how far it is."""

from __future__ import annotations

import shutil
import sys
from enum import StrEnum
from typing import Annotated

import typer

from pretrainctl.output import DataFormat, print_data, print_text


class DescriptionFormat(StrEnum):
    """Text for people, or JSON."""

    TEXT = "text"
    JSON = "json"


Name = Annotated[str, typer.Argument(metavar="NAME", help="The PretrainJob.")]
Namespace = Annotated[
    str | None,
    typer.Option(
        "--namespace", "-n", metavar="NAMESPACE", help="Its namespace; your context's, if left out."
    ),
]
Kubeconfig = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Instead of $KUBECONFIG or ~/.kube/config."),
]
Context = Annotated[
    str | None, typer.Option(metavar="CONTEXT", help="Another context of the kubeconfig.")
]


def describe(
    name: Name,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[DescriptionFormat, typer.Option("--output", "-o")] = DescriptionFormat.TEXT,
) -> None:
    """Tell why a PretrainJob on a cluster does not run, what to do, and how far it is.

    It reads the job, its pods and events, and writes nothing; the role view in the job's
    namespace is enough. It works without an operator, and then says that none is there.
    """
    from pretrainctl.cluster.access import open_cluster
    from pretrainctl.cluster.description import as_data, layout, paragraphs
    from pretrainctl.cluster.reading import read_findings

    cluster = open_cluster(kubeconfig, context)
    findings = read_findings(cluster, namespace or cluster.namespace, name)
    if output is DescriptionFormat.JSON:
        print_data(as_data(findings), DataFormat.JSON)
    else:
        print_text(layout(paragraphs(findings), width=_width()))


def _width() -> int | None:
    """Columns of the terminal; None when the text goes to a file or another program."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None
