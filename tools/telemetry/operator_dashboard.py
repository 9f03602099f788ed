"""The board of the operator: whether it keeps up, and what it asks of the API server."""

from __future__ import annotations

from tools.telemetry.panels import Dashboard, Query, Row, figure, lines, table
from tools.telemetry.promql import largest, or_zero, quantile, rate, since, total

_OWN = "and on (instance) pretrain_operator_build_info"
"""Keeps a client library's series of this operator's processes alone."""

_MEMORY = Query(f"process_resident_memory_bytes {_OWN}", "{{pod}}")
_CPU = Query(f"rate(process_cpu_seconds_total[$__rate_interval]) {_OWN}", "{{pod}}")
_LAST = "pretrain_operator_last_reconcile_timestamp_seconds"
_RECONCILE = "pretrain_operator_reconcile_duration_seconds"
_REQUESTS = "pretrain_operator_api_requests_total"

_HEALTH = Row(
    "Health",
    (
        figure("Leaders", "none", total("pretrain_operator_is_leader"), width=6),
        figure("Replicas", "none", Query("count(pretrain_operator_build_info)"), width=6),
        figure("Since the last reconcile", "s", since(_LAST), width=6),
        figure("Jobs in the queue", "none", total("pretrain_operator_queue_depth"), width=6),
    ),
)

_WORK = Row(
    "Work",
    (
        lines(
            "Reconcile duration",
            "s",
            quantile(0.5, _RECONCILE, legend="median"),
            quantile(0.99, _RECONCILE, legend="99th percentile"),
        ),
        lines(
            "Reconciles",
            "cps",
            rate(f"{_RECONCILE}_count", legend="ended"),
            rate("pretrain_operator_reconcile_errors_total", "reason"),
        ),
        lines("Queue", "none", total("pretrain_operator_queue_depth", legend="jobs")),
        lines("API requests", "reqps", rate(_REQUESTS, "verb", "resource")),
        lines(
            "API answers without success",
            "reqps",
            or_zero(rate(_REQUESTS, "code", where='code!~"2.."')),
        ),
        lines(
            "Polls of progress",
            "reqps",
            rate("pretrain_operator_progress_polls_total", "outcome"),
        ),
    ),
)

_PROCESSES = Row(
    "Processes",
    (
        lines("Leader", "none", largest("pretrain_operator_is_leader", "pod"), width=6),
        lines("Memory", "bytes", _MEMORY, width=6),
        lines("CPU", "percentunit", _CPU, width=6),
        table(
            "Versions", "none", Query("count by (version) (pretrain_operator_build_info)"), width=6
        ),
    ),
)

OPERATOR = Dashboard(
    name="operator",
    title="Pretrain / Operator",
    about="The operator itself.",
    rows=(_HEALTH, _WORK, _PROCESSES),
)
