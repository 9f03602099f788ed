"""What other operators needed, beside what ours did: figures to compare with, not to meet.

They were measured with another load on another day, and are quoted with their conditions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table

CONDITIONS = (
    "Quoted rows: 1,000 jobs of one stage with 4 pods that run 20 s, created at once on KWOK "
    "nodes; Kubernetes 1.34.4, etcd 3.6, 2 cores; controllers at 1,000 requests a second unless "
    "said; the minimal ones write status twice a job and read no reports. CPU and requests are "
    "the operator's own, per job. This one's jobs have {stages} stages with {pods:g} pods in "
    "all, which run {runs:g} s; its CPU and requests are per job and stage."
)


COLUMNS = ("pods s", "done s", "CPU ms", "MiB", "requests", "all CPU s")
"""All pods created, all jobs complete; CPU, memory and requests of the operator."""


@dataclass(frozen=True)
class Row:
    """One operator: seconds, CPU-ms a job, MiB, requests a job, CPU-seconds of all processes."""

    operator: str
    created: str
    complete: str
    cpu: str = "-"
    memory: str = "-"
    requests: str = "-"
    all_cpu: str = "-"


ROWS = (
    Row("none, plain Indexed Jobs", "31", "65", all_cpu="106"),
    Row("... controllers at 20 requests/s", "296", "620", all_cpu="185"),
    Row("training-operator 1.8.1 (Go)", "406-414", "455-463", "38", "226", "19.1", "325-332"),
    Row("... 10 threads, no client limit", "78", "138-141", "37-38", "225", "15", "245-250"),
    Row("minimal, kopf, generated client", "62", "97", "14", "189", "3.1", "167"),
    Row("minimal, kopf, raw session", "55", "92", "7.6", "138", "3.1", "157"),
    Row("minimal, no framework", "58", "92", "2.6", "42", "3.2", "154"),
    Row("... without Services", "34", "72", "2.8", "42", "2.9", "121"),
)


def reference_table(figures: dict[str, Any]) -> Table:
    """Our figures, per job and stage, under those of others."""
    table = Table(
        "operator",
        *COLUMNS,
        caption=_conditions(figures),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for row in ROWS:
        table.add_row(*vars(row).values())
    table.add_section()
    table.add_row(*vars(_own(figures)).values())
    return table


def _conditions(figures: dict[str, Any]) -> str:
    return CONDITIONS.format(
        stages=figures["stages"], pods=figures["pods_per_job"], runs=figures["pods_run_seconds"]
    )


def _own(figures: dict[str, Any]) -> Row:
    return Row(
        f"this one, {figures['jobs']} jobs",
        f"{figures['pods_created_seconds']:.0f}",
        f"{figures['complete_seconds']:.0f}",
        f"{figures['cpu_ms_per_job_and_stage']:.1f}",
        f"{figures['peak_rss_mb']:.0f}",
        f"{figures['requests_per_job_and_stage']:.1f}",
        f"{figures['all_cpu_seconds']:.0f}",
    )
