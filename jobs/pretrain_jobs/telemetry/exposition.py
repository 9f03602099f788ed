"""Samples as prometheus-client's metrics, with the labels that all of a process's have."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from prometheus_client import Metric
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.registry import Collector

from pretrain_jobs.telemetry.families import FAMILIES, SCOPE_LABELS, Family, Kind
from pretrain_jobs.telemetry.process_samples import process_samples
from pretrain_jobs.telemetry.samples import Counted, Sample, published_samples

_KINDS: dict[Kind, Any] = {
    "counter": CounterMetricFamily,
    "gauge": GaugeMetricFamily,
    "histogram": HistogramMetricFamily,
}


class ProcessCollector(Collector):
    """Everything that this process has to tell, made anew at each scrape.

    `labels` has a value for each of namespace, job, attempt, stage and rank.
    """

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels

    def collect(self) -> Iterator[Metric]:
        """The families that have samples now."""
        return metrics_of([*published_samples(), *process_samples()], self._labels)


def metrics_of(samples: Iterable[Sample], labels: Mapping[str, str]) -> Iterator[Metric]:
    """Samples by family, in the order of the reference; families without any are left out."""
    by_family: dict[Family, list[Sample]] = defaultdict(list)
    for sample in samples:
        if sample.value is not None:
            by_family[sample.family].append(sample)
    for family in FAMILIES:
        if family in by_family:
            yield _metric(family, by_family[family], labels)


def _metric(family: Family, samples: Sequence[Sample], labels: Mapping[str, str]) -> Metric:
    metric: Any = _KINDS[family.kind](family.name, family.help, labels=family.label_names)
    common = [labels[name] for name in SCOPE_LABELS[family.scope]]
    for sample in samples:
        _add(metric, [*common, *sample.labels], sample.value)
    return cast("Metric", metric)


def _add(metric: Any, labels: list[str], value: float | Counted | None) -> None:
    if not isinstance(value, Counted):
        metric.add_metric(labels, value)
        return
    buckets = [(str(float(bound)), count) for bound, count in value.buckets]
    metric.add_metric(labels, [*buckets, ("+Inf", value.count)], value.total)
