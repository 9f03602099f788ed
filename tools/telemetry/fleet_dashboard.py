"""The board of all jobs: which there are, what they lose time to, which need a look."""

from __future__ import annotations

from tools.telemetry.panels import Dashboard, Query, Row, areas, figure, lines, table
from tools.telemetry.promql import growth, or_zero, rate, total

_SHOWN_PHASES = ("Pending", "Training", "Suspended", "Failed", "Complete")


def _in_phase(phase: str, expr: str) -> str:
    """The series of those jobs that are in a phase."""
    phases = f'pretrain_job_status_phase{{phase="{phase}"}}'
    return f"{expr} and on (namespace, job) ({phases} == 1)"


_CREATED = "time() - pretrain_job_created_timestamp_seconds"
_LONGEST_WAIT = Query(f"max({_in_phase('Pending', f'({_CREATED})')})", "pending")
_PHASES = Query(
    "sum by (phase) (max by (namespace, job, phase) (pretrain_job_status_phase))", "{{phase}}"
)
_GOODPUT = Query("bottomk(10, max by (namespace, job) (pretrain_job_goodput_ratio))")
_COMMITTED = "max by (namespace, job) (pretrain_job_last_checkpoint_timestamp_seconds)"
_AGES = Query(f"topk(10, {_in_phase('Training', f'(time() - {_COMMITTED})')})")
_RESTARTS = Query("topk(10, sum by (namespace, job) (pretrain_job_restarts_total))")


_JOBS = Row(
    "Jobs",
    (
        *(
            figure(
                phase,
                "none",
                or_zero(total("pretrain_job_status_phase", where=f'phase="{phase}"')),
                width=4,
            )
            for phase in _SHOWN_PHASES
        ),
        figure(
            "Workers",
            "none",
            or_zero(total("pretrain_job_workers", where='state="ready"')),
            width=4,
        ),
        areas("Jobs by phase", "none", _PHASES, width=12),
        lines("Longest wait to start", "s", or_zero(_LONGEST_WAIT), width=12),
    ),
)

_TIME = Row(
    "Where time goes",
    (
        areas(
            "Attempts by what they do",
            "none",
            rate("pretrain_job_time_seconds_total", "category"),
            width=12,
            about="Training attempts in each category, by their rank 0.",
        ),
        lines(
            "Restarts in an hour",
            "none",
            or_zero(growth("pretrain_job_restarts_total", "cause", window="1h")),
            width=12,
        ),
    ),
)

_WORST = Row(
    "Jobs to look at",
    (
        table("Lowest goodput", "percentunit", _GOODPUT),
        table("Longest without a checkpoint", "s", _AGES),
        table("Most restarts", "none", _RESTARTS),
    ),
)

FLEET = Dashboard(
    name="fleet",
    title="Pretrain / Fleet",
    about="All PretrainJobs of the cluster.",
    rows=(_JOBS, _TIME, _WORST),
    hours=24,
)
