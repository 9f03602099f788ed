"""A job that ran on the bed from its first stage to its last, and what was seen of it."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from bed.binaries import program
from bed.cluster import Bed
from bed.namespaces import create_namespace, delete_namespace
from pretrain_api.schema import PRINTER_COLUMNS

from pretrain_testing.cluster_jobs import KIND, ClusterJobs, Manifest
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.small_jobs import STEPS, small_quickstart

NAME = "quickstart"
NEWS = "News"
"""Title of the cell with what is no mere figure: states of stages and of conditions."""

_NEWS_PATHS = ("status.phase", "status.stages[*].state", "status.conditions[*].status")
POLL_SECONDS = 2
"""How often the operator of the bed asks for progress, and tells figures (bed/values.yaml)."""


@dataclass(frozen=True)
class CompletedJob:
    """What was seen of the job while it ran, and what is there now that it is complete."""

    jobs: ClusterJobs
    prefix: Prefix
    status: Manifest
    rows: list[dict[str, str]]
    """What `kubectl get --watch` has in its columns, by title, and the news of each version."""

    requests: list[Manifest]
    """Audit events of the operator's requests that concern the namespace."""

    @property
    def seconds(self) -> float:
        """How long it ran."""
        start, end = (
            datetime.fromisoformat(self.status[name]) for name in ("startTime", "completionTime")
        )
        return (end - start).total_seconds()


@contextmanager
def completed_job(bed: Bed, seen: Path) -> Iterator[CompletedJob]:
    """Run the small quickstart; what is watched of it is written into a file."""
    namespace = f"whole-job-{secrets.token_hex(3)}"
    create_namespace(bed.api, namespace)
    prefix = Prefix(namespace)
    prefix.upload_data()
    jobs = ClusterJobs(bed.kubectl, namespace)
    with seen.open("w") as file, _watching(jobs, bed, file) as watch:
        job = small_quickstart(name=NAME, steps=STEPS)
        jobs.apply({**job, "spec": {**job["spec"], "storage": prefix.storage}})
        jobs.wait_for_condition(NAME, "Complete")
        watch.terminate()
    yield CompletedJob(
        jobs=jobs,
        prefix=prefix,
        status=jobs.status(NAME),
        rows=_table(seen.read_text()),
        requests=[event for event in operator_requests(bed) if _namespace(event) == namespace],
    )
    delete_namespace(bed.api, namespace)


def operator_requests(bed: Bed) -> list[Manifest]:
    """Audit events of all requests that the operator has made so far."""
    events = (json.loads(line) for line in bed.audit_log.read_text().splitlines())
    return [event for event in events if event["user"]["username"].endswith(":pretrain-operator")]


def _namespace(event: Manifest) -> str:
    return str(event.get("objectRef", {}).get("namespace", ""))


def _watching(jobs: ClusterJobs, bed: Bed, file: Any) -> subprocess.Popen[bytes]:
    """Watch the job's printer columns, a line for each version of it, written into a file."""
    command = (program("kubectl"), f"--kubeconfig={bed.kubeconfig}", "-n", jobs.namespace)
    columns = [f"{{{path}}}" for _, _, path, _ in PRINTER_COLUMNS]
    cells = "|".join([*columns, " ".join(f"{{.{path}}}" for path in _NEWS_PATHS)])
    output = f'--output=jsonpath={cells}{{"\\n"}}'
    return subprocess.Popen([*command, "get", KIND, "--watch", output], stdout=file)


def _table(text: str) -> list[dict[str, str]]:
    """The lines by the titles of their columns."""
    titles = [*(title for title, _, _, _ in PRINTER_COLUMNS), NEWS]
    return [dict(zip(titles, line.split("|"), strict=True)) for line in text.splitlines()]
