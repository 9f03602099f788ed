"""Queries as the boards need them, each with a legend made of the labels it keeps.

`@job` stands for the matchers of the board that a query is on.
"""

from __future__ import annotations

from tools.telemetry.panels import Query

WINDOW = "$__rate_interval"
"""Grafana puts in what spans at least four scrapes."""


def largest(metric: str, *by: str, where: str = "", legend: str = "") -> Query:
    """The largest value of a gauge, by labels; replicas and old attempts do not add up."""
    return Query(f"max{_by(by)} ({_series(metric, where)})", legend or _legend(by))


def total(metric: str, *by: str, where: str = "", legend: str = "") -> Query:
    """The sum of all series, by labels."""
    return Query(f"sum{_by(by)} ({_series(metric, where)})", legend or _legend(by))


def rate(counter: str, *by: str, where: str = "", legend: str = "") -> Query:
    """What a counter grows by in a second, by labels."""
    series = _series(counter, where)
    return Query(f"sum{_by(by)} (rate({series}[{WINDOW}]))", legend or _legend(by))


def growth(
    counter: str, *by: str, where: str = "", legend: str = "", window: str = WINDOW
) -> Query:
    """What a counter grew by in a window, by labels."""
    series = _series(counter, where)
    return Query(f"sum{_by(by)} (increase({series}[{window}]))", legend or _legend(by))


def mean(histogram: str, *by: str, legend: str = "mean") -> Query:
    """The mean of a histogram's newest observations, by labels."""
    parts = rate(f"{histogram}_sum", *by).expr, rate(f"{histogram}_count", *by).expr
    return Query(" / ".join(parts), legend)


def quantile(share: float, histogram: str, *, legend: str) -> Query:
    """A quantile of a histogram's newest observations."""
    buckets = rate(f"{histogram}_bucket", "le").expr
    return Query(f"histogram_quantile({share:g}, {buckets})", legend)


def since(timestamp: str, *, legend: str = "age") -> Query:
    """Seconds since the newest of a metric's times."""
    return Query(f"time() - {largest(timestamp).expr}", legend)


def or_zero(query: Query) -> Query:
    """The query, or a zero while it has no series."""
    return Query(f"{query.expr} or on () vector(0)", query.legend)


def expand(expr: str, matchers: str) -> str:
    """The query on a board with these matchers, none if empty."""
    if matchers:
        return expr.replace("@job", matchers)
    return expr.replace("{@job}", "").replace("{@job,", "{")


def _series(metric: str, where: str) -> str:
    return f"{metric}{{@job,{where}}}" if where else f"{metric}{{@job}}"


def _by(labels: tuple[str, ...]) -> str:
    return f" by ({', '.join(labels)})" if labels else ""


def _legend(labels: tuple[str, ...]) -> str:
    return " ".join(f"{{{{{label}}}}}" for label in labels)
