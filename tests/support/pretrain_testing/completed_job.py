"""A job that ran on the bed from its first stage to its last, and what was seen of it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bed.binaries import program
from bed.cluster import Bed
from bed.namespaces import create_namespace, delete_namespace
from pretrain_api.schema import PRINTER_COLUMNS

from pretrain_testing.cluster_jobs import KIND, ClusterJobs, Manifest
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.small_jobs import STEPS, small_quickstart

NAMESPACE = "whole-job"
NAME = "quickstart"


@dataclass(frozen=True)
class CompletedJob:
    """What was seen of the job while it ran, and what is there now that it is complete."""

    jobs: ClusterJobs
    prefix: Prefix
    status: Manifest
    rows: list[dict[str, str]]
    """What `kubectl get --watch` has in its columns, by title."""

    requests: list[Manifest]
    """Audit events of the operator's requests that concern the namespace."""


@contextmanager
def completed_job(bed: Bed, seen: Path) -> Iterator[CompletedJob]:
    """Run the small quickstart; what is watched of it is written into a file."""
    create_namespace(bed.api, NAMESPACE)
    prefix = Prefix(NAMESPACE)
    prefix.upload_data()
    jobs = ClusterJobs(bed.kubectl, NAMESPACE)
    with seen.open("w") as file, _watching(bed, file) as watch:
        job = small_quickstart(name=NAME, steps=STEPS)
        jobs.apply({**job, "spec": {**job["spec"], "storage": prefix.storage}})
        jobs.wait_for_condition(NAME, "Complete")
        watch.terminate()
    yield CompletedJob(
        jobs=jobs,
        prefix=prefix,
        status=jobs.status(NAME),
        rows=_table(seen.read_text()),
        requests=[event for event in operator_requests(bed) if _namespace(event) == NAMESPACE],
    )
    delete_namespace(bed.api, NAMESPACE)


def operator_requests(bed: Bed) -> list[Manifest]:
    """Audit events of all requests that the operator has made so far."""
    events = (json.loads(line) for line in bed.audit_log.read_text().splitlines())
    return [event for event in events if event["user"]["username"].endswith(":pretrain-operator")]


def _namespace(event: Manifest) -> str:
    return str(event.get("objectRef", {}).get("namespace", ""))


def _watching(bed: Bed, file: Any) -> subprocess.Popen[bytes]:
    """Watch the job's printer columns, a line for each version of it, written into a file."""
    command = (program("kubectl"), f"--kubeconfig={bed.kubeconfig}", f"--namespace={NAMESPACE}")
    cells = "|".join(f"{{{path}}}" for _, _, path, _ in PRINTER_COLUMNS)
    output = f'--output=jsonpath={cells}{{"\\n"}}'
    return subprocess.Popen([*command, "get", KIND, "--watch", output], stdout=file)


def _table(text: str) -> list[dict[str, str]]:
    """The lines by the titles of their columns."""
    titles = [title for title, _, _, _ in PRINTER_COLUMNS]
    return [dict(zip(titles, line.split("|"), strict=True)) for line in text.splitlines()]
