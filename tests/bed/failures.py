"""Writes down what a failed test leaves in a cluster: logs, events, objects."""

from __future__ import annotations

import re
from pathlib import Path

from bed.chart import NAMESPACE, RELEASE
from bed.cluster import Bed
from bed.errors import BedError

_OBJECTS = "pretrainjobs,jobs,pods,services,configmaps,leases"
_LOG_LINES = "--tail=5000"


def dump_failure(bed: Bed, *, test: str, namespace: str | None) -> Path:
    """A folder of text files about a test's namespace and the operator."""
    folder = bed.profile.state / "failures" / re.sub(r"[^\w.-]+", "_", test)[-150:]
    folder.mkdir(parents=True, exist_ok=True)
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
    _write(bed, folder / "pods.txt", "describe", "pods", place)
    for pod in bed.kubectl("get", "pods", place, "--output=name").split():
        name = f"{pod.removeprefix('pod/')}.log"
        _write(bed, folder / name, "logs", pod, place, "--all-containers", "--prefix", _LOG_LINES)


def _write(bed: Bed, path: Path, *arguments: str) -> None:
    """What kubectl says, or why it says nothing: a dump never hides the failure it is about."""
    try:
        path.write_text(bed.kubectl(*arguments))
    except BedError as error:
        path.write_text(f"{error}\n")
