"""Every query of the chart's dashboards returns data once Prometheus has scraped a real job.

About two minutes: the job trains, loses a worker, and trains on.
"""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from bed.cluster import Bed
from bed.namespaces import create_namespace, delete_namespace
from bed.prometheus import URL
from pretrain_testing.cluster_jobs import (
    PATIENCE_SECONDS,
    POLL_SECONDS,
    ClusterJobs,
    stage_of,
    trains_with_a_checkpoint,
)
from pretrain_testing.cluster_storage import Prefix
from pretrain_testing.small_jobs import training_job

BOARDS = sorted((Path(__file__).parents[3] / "charts/pretrain-operator/dashboards").glob("*.json"))
WITHOUT_ACCELERATORS = {"Accelerators"}
"""Rows that say nothing on nodes that have none."""

NAMESPACE = "dashboards"
JOB = "watched"
STEP_SECONDS = 5


@dataclass(frozen=True)
class Asked:
    """A query of a panel, with what Grafana would put in."""

    board: str
    panel: str
    expr: str


def asked() -> Iterator[Asked]:
    """All that Grafana asks when somebody looks at this job, at all jobs, and at the operator."""
    for path in BOARDS:
        board = json.loads(path.read_text())
        for panel in open_panels(board["panels"]):
            for target in panel.get("targets", []):
                yield Asked(path.stem, panel["title"], filled_in(target["expr"]))
        for mark in board["annotations"]["list"]:
            yield Asked(path.stem, mark["name"], filled_in(mark["expr"]))


def open_panels(panels: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for panel in panels:
        yield panel
        if panel["title"] not in WITHOUT_ACCELERATORS:
            yield from panel.get("panels", [])


def filled_in(expr: str) -> str:
    values = {"$namespace": NAMESPACE, "$job": JOB, "$__rate_interval": f"{4 * STEP_SECONDS}s"}
    for name, value in values.items():
        expr = expr.replace(name, value)
    return expr


def series_of(expr: str, since: float) -> list[dict[str, Any]]:
    """The series of a query that have had a number since then."""
    parameters = {"query": expr, "start": since, "end": time.time(), "step": STEP_SECONDS}
    url = f"{URL}/api/v1/query_range?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310
        series: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return [one for one in series if any(value != "NaN" for _, value in one["values"])]


@pytest.fixture(scope="module")
def restarted_at(bed: Bed) -> Iterator[float]:
    """When a job began that has lost a worker since, and trains in its second attempt."""
    create_namespace(bed.api, NAMESPACE)
    prefix = Prefix(NAMESPACE)
    prefix.upload_data()
    jobs = ClusterJobs(bed.kubectl, NAMESPACE)
    began = time.time()
    jobs.apply(endless_job(prefix))
    jobs.wait_for(JOB, "training", trains_with_a_checkpoint)
    jobs.delete_child("pod", jobs.children("pods", JOB, "train")[-1])
    jobs.wait_for(JOB, "a second attempt", lambda s: stage_of(s, "train")["attempt"] > 0)
    jobs.wait_for(JOB, "training again", trains_with_a_checkpoint)
    yield began
    delete_namespace(bed.api, NAMESPACE)


def endless_job(prefix: Prefix) -> dict[str, Any]:
    """A job that trains until it is deleted, and evaluates and saves every few steps."""
    job = training_job(name=JOB)
    spec = job["spec"]
    spec["training"] |= {"maxSteps": 1_000_000, "evaluation": {"everySteps": 20}}
    spec["checkpoint"] = {"everySteps": 20}
    backoff = {"backoff": {"initialSeconds": 1}}
    return {**job, "spec": {**spec, "storage": prefix.storage, "failurePolicy": backoff}}


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something comes to hold while Prometheus scrapes on."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not holds() and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    return holds()


def test_every_query_of_every_dashboard_returns_data(restarted_at: float) -> None:
    silent = list(asked())
    assert len(silent) > 70

    def all_have_data() -> bool:
        silent[:] = [query for query in silent if not series_of(query.expr, restarted_at)]
        return not silent

    assert eventually(all_have_data), silent


def test_the_first_rank_of_every_pod_is_scraped(restarted_at: float) -> None:
    steps = f'pretrain_step_duration_seconds_count{{namespace="{NAMESPACE}",job="{JOB}"}}'

    def both_ranks() -> bool:
        found = series_of(f"{steps} > 0", restarted_at)
        return {one["metric"]["rank"] for one in found} == {"0", "1"}

    assert eventually(both_ranks)
