"""`pretrainctl validate`: everything that is wrong with manifests, without a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pretrainctl.exit_codes import ExitCode
from pretrainctl.output import DataFormat, print_data, print_note, print_text

if TYPE_CHECKING:
    from pretrainctl.manifest_file import ManifestFile, Problem


def validate(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="YAML or JSON; - is standard input.")
    ],
    output: Annotated[
        DataFormat | None, typer.Option("--output", "-o", help="Print the findings as data.")
    ] = None,
) -> None:
    """Check PretrainJobs without a cluster.

    Every problem is one line, FILE:LINE:COLUMN: field: what is wrong and what would do.
    Objects of other kinds in the same file are left alone. A warning tells of what is right, but
    seldom meant so, and leaves the exit code as it is.
    """
    from pretrainctl.manifest_file import read_manifest_file

    found = [read_manifest_file(file) for file in files]
    if output is not None:
        print_data([_as_data(manifest) for manifest in found], output)
    else:
        for manifest in found:
            _report(manifest)
    if any(manifest.problems for manifest in found):
        raise typer.Exit(ExitCode.INVALID)


def _report(manifest: ManifestFile) -> None:
    for problem in manifest.problems:
        print_note(str(problem))
    for doubt in manifest.doubts:
        print_note(f"warning: {doubt}")
    if not manifest.problems:
        names = ", ".join(job.metadata.name for job in manifest.jobs)
        print_text(f"{manifest.file}: valid ({names})")


def _as_data(manifest: ManifestFile) -> dict[str, Any]:
    return {
        "file": manifest.file,
        "valid": not manifest.problems,
        "jobs": [job.metadata.name for job in manifest.jobs],
        "problems": [_problem(problem) for problem in manifest.problems],
        "warnings": [_problem(doubt) for doubt in manifest.doubts],
    }


def _problem(problem: Problem) -> dict[str, Any]:
    return {
        "line": problem.position.line,
        "column": problem.position.column,
        "path": problem.path,
        "message": problem.message,
    }
