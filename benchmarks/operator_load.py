"""What the operator needs for many jobs at once: time, CPU, memory and requests.

A real operator, as a process, runs jobs of all stages on a real API server with real controllers;
only the pods are played. Whatever else runs on the machine slows it and makes its CPU dearer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from typing import Any

from bed.cluster import Bed
from pretrain_api.reports import STAGES
from pretrain_testing.operator_process import OperatorProcess

from benchmarks.load.cluster import OPERATOR, PROFILE, load_cluster, operator_kubeconfig
from benchmarks.load.jobs import Followed, Load, LoadFailedError
from benchmarks.load.readings import (
    cpu_of_parts,
    cpu_seconds,
    peak_megabytes,
    requests_by_verb,
    wait_until_still,
    yardstick_ms,
)
from benchmarks.load.stages import load_stages

JOBS = 300
RUN_SECONDS = 3.0
"""How long every pod runs."""

_JOBS_A_NODE = 16
_LOOK_SECONDS = 0.1
_YARDSTICK_SECONDS = 10.0
_ENVIRONMENT = {
    "PRETRAIN_OPERATOR_NAMESPACES": "",
    "PRETRAIN_OPERATOR_POLL_SECONDS": "",
    "PRETRAIN_OPERATOR_RESYNC_SECONDS": "",
    "PRETRAIN_OPERATOR_LOG_FORMAT": "",
    "PRETRAIN_OPERATOR_LEASE_SECONDS": "60",
}
"""Empty variables are as good as unset ones: all namespaces, and no haste of tests.

The Lease outlasts what an API server on a crowded machine may take for an answer.
"""


def measure_operator(jobs: int = JOBS, *, run_seconds: float = RUN_SECONDS) -> dict[str, Any]:
    """Create so many jobs at once and have them run to their end.

    Times run from the first creation on. Requests are the operator's own count, but for watches,
    the Lease and discovery. Raises BedError without a cluster, LoadFailedError when a job fails or
    nothing happens any more; the operator's log is kept then.
    """
    stages = load_stages(run_seconds=run_seconds)
    with load_cluster(nodes=4 + jobs // _JOBS_A_NODE, stages=stages) as bed:
        load = Load(bed, jobs)
        load.prepare()
        with _operator(bed) as operator:
            figures = _run(load, operator)
    return {
        "jobs": jobs,
        "stages": len(STAGES),
        "pods_run_seconds": run_seconds,
        "load_average": os.getloadavg()[0],
        **figures,
    }


@contextmanager
def _operator(bed: Bed) -> Iterator[OperatorProcess]:
    """One replica with the product's own settings; its log is kept when the load fails."""
    operator = OperatorProcess(
        kubeconfig=operator_kubeconfig(bed),
        namespace=OPERATOR,
        log=PROFILE.state / "operator.log",
        environment=_ENVIRONMENT,
    ).start()
    try:
        yield operator.wait_until_leading().wait_until_ready()
    except BaseException as error:
        kept = PROFILE.state / "failures" / "operator.log"
        kept.parent.mkdir(exist_ok=True)
        kept.write_text(operator.logged())
        error.add_note(f"The operator's log is kept as {kept}.")
        raise
    finally:
        if operator.process.poll() is None:
            operator.kill()


def _wait_until_complete(followed: Followed, operator: OperatorProcess) -> list[float]:
    """Yardsticks that were taken every few seconds meanwhile."""
    yardsticks = [yardstick_ms()]
    due = time.monotonic() + _YARDSTICK_SECONDS
    while not followed.all_complete():
        if operator.process.poll() is not None:
            last = operator.logged().splitlines()[-1:]
            raise LoadFailedError(f"the operator ended {operator.process.returncode}: {last}")
        if time.monotonic() > due:
            yardsticks.append(yardstick_ms())
            due = time.monotonic() + _YARDSTICK_SECONDS
        time.sleep(_LOOK_SECONDS)
    return yardsticks


def _run(load: Load, operator: OperatorProcess) -> dict[str, Any]:
    pid = operator.process.pid
    asked = sum(requests_by_verb(operator).values())
    before = cpu_seconds(pid)
    began, started = time.time(), time.monotonic()
    with cpu_of_parts(PROFILE) as parts:
        followed = load.follow()
        creating = load.create()
        yardstick = median(_wait_until_complete(followed, operator))
        complete = time.monotonic() - started
        wait_until_still(pid)
        cpu = cpu_seconds(pid) - before
    peak = peak_megabytes(pid)
    requests = requests_by_verb(operator)
    pods = load.pods_created()
    turns = load.jobs * len(STAGES)
    return {
        "pods_per_job": sum(count for count, _ in pods.values()) / load.jobs,
        "creating_seconds": creating,
        "pods_created_seconds": max(last for _, last in pods.values()) - began,
        "complete_seconds": complete,
        "cpu_ms_per_job": 1000 * cpu / load.jobs,
        "cpu_ms_per_job_and_stage": 1000 * cpu / turns,
        "cpu_yardstick_ms": yardstick,
        "cpu_yardsticks_per_job_and_stage": 1000 * cpu / turns / yardstick,
        "peak_rss_mb": peak,
        "requests_per_job_and_stage": (sum(requests.values()) - asked) / turns,
        **{f"requests: {name}": count / turns for name, count in requests.items()},
        "progress_polls": operator.metric("pretrain_operator_progress_polls_total"),
        "reconciles_per_job": operator.metric("pretrain_operator_reconcile_duration_seconds_count")
        / load.jobs,
        "reconcile_errors": operator.metric("pretrain_operator_reconcile_errors_total"),
        "largest_status_bytes": load.largest_status(),
        **{f"cpu_seconds: {name}": seconds for name, seconds in parts.items()},
        "all_cpu_seconds": cpu + sum(parts.values()),
    }
