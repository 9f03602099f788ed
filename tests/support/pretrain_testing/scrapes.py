"""Asking a stage's endpoint as Prometheus and the operator do."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open
from prometheus_client.parser import text_string_to_metric_families as parse_text

OPEN_METRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
"""What Prometheus asks for."""

PATIENCE_SECONDS = 300.0
"""Far more than any training needs for its first steps, on a busy machine too."""

POLL_SECONDS = 0.1


@dataclass(frozen=True)
class Scrape:
    """One answer of /metrics."""

    text: str
    metrics: tuple[Metric, ...]

    @property
    def families(self) -> set[str]:
        """Names of the families, counters with their `_total`."""
        return {m.name + "_total" * (m.type == "counter") for m in self.metrics}

    def values(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """Samples of this name by their labels, sorted."""
        return {
            tuple(sorted(sample.labels.items())): sample.value
            for metric in self.metrics
            for sample in metric.samples
            if sample.name == name
        }

    def value(self, name: str, **labels: str) -> float | None:
        """The one sample of this name with these labels among its own; None without it."""
        wanted: Mapping[str, str] = labels
        found = [
            value for own, value in self.values(name).items() if wanted.items() <= dict(own).items()
        ]
        assert len(found) <= 1, found
        return found[0] if found else None


def get(port: int, path: str, *, host: str = "127.0.0.1", accept: str = "") -> tuple[int, bytes]:
    """Status and body of an answer."""
    request = urllib.request.Request(f"http://{host}:{port}{path}", headers={"Accept": accept})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def scrape(port: int, *, host: str = "127.0.0.1", open_metrics: bool = False) -> Scrape | None:
    """What /metrics tells now; None while nobody listens."""
    with suppress(urllib.error.URLError, ConnectionError):
        status, body = get(port, "/metrics", host=host, accept=OPEN_METRICS if open_metrics else "")
        assert status == 200, body
        parse = parse_open if open_metrics else parse_text
        return Scrape(body.decode(), tuple(parse(body.decode())))
    return None


def wait_for_scrape(port: int, what: str, holds: Callable[[Scrape], bool]) -> Scrape:
    """The first scrape for which something holds; an assertion fails when none comes."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        found = scrape(port)
        if found is not None and holds(found):
            return found
        time.sleep(POLL_SECONDS)
    raise AssertionError(f"port {port} did not tell of {what} within {PATIENCE_SECONDS:g} s")
