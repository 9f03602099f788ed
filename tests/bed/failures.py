"""Writes down what a failed test leaves in a cluster: logs, events, objects."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from bed.chart import NAMESPACE, RELEASE
from bed.cluster import Bed
from bed.errors import BedError

_OBJECTS = "jobs,pods,services,configmaps,leases"
_LOG_LINES = "--tail=5000"


def dump_failure(bed: Bed, *, test: str, namespace: str | None) -> Path:
    """A folder of text files about a test's namespace and the operator."""
    folder = bed.profile.state / "failures" / re.sub(r"[^\w.-]+", "_", test)[-150:]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if bed.profile.has_nodes:
        selector = f"--selector=app.kubernetes.io/name={RELEASE}"
        flags = ("--prefix", _LOG_LINES, f"--namespace={NAMESPACE}")
        _write(bed, folder / "operator.log", "logs", selector, *flags)
        _write(bed, folder / "nodes.txt", "describe", "nodes")
    if namespace is not None:
        _dump_namespace(bed, folder, f"--namespace={namespace}")
    return folder


def _dump_namespace(bed: Bed, folder: Path, place: str) -> None:
    by_age = "--sort-by=.metadata.creationTimestamp"
    _write(bed, folder / "events.txt", "get", "events", place, by_age)
    _write(bed, folder / "objects.txt", "get", _OBJECTS, place, "--output=wide")
    _write(bed, folder / "objects.yaml", "get", _OBJECTS, place, "--output=yaml")
    _write(bed, folder / "pretrainjobs.yaml", "get", "pretrainjobs", place, "--output=yaml")
    _write(bed, folder / "pods.txt", "describe", "pods", place)
    _write(bed, folder / "pods", "get", "pods", place, "--output=name")
    for line in (folder / "pods").read_text().splitlines():
        kind, _, pod = line.partition("/")
        if kind == "pod":
            path = folder / f"{pod}.log"
            _write(bed, path, "logs", pod, place, "--all-containers", "--prefix", _LOG_LINES)


def _write(bed: Bed, path: Path, *arguments: str) -> None:
    """What kubectl says, or why it says nothing: a dump never hides the failure it is about."""
    try:
        path.write_text(bed.kubectl(*arguments))
    except BedError as error:
        path.write_text(f"{error}\n")
