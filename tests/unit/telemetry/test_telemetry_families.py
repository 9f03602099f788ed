"""Names, units and labels of the families, and samples as Prometheus reads them."""

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_jobs.telemetry.exposition import ProcessCollector
from pretrain_jobs.telemetry.families import (
    ACCELERATOR_MEMORY,
    FAMILIES,
    GLOBAL_STEP,
    JOB_TIME,
    STEP_DURATION,
    Family,
)
from pretrain_jobs.telemetry.samples import Counted, Histogram, Sample, published
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import CollectorRegistry

LABELS = {"namespace": "n", "job": "j", "attempt": "2", "stage": "train", "rank": "0"}
UNITS = {"seconds": "_seconds", "bytes": "_bytes", "ratio": "_ratio"}
"""Base units that a name ends in, before `_total`."""


class Fixed:
    """A source that always has the same samples."""

    def __init__(self, *samples: Sample) -> None:
        self._samples = samples

    def samples(self) -> tuple[Sample, ...]:
        return self._samples


def exposed(*samples: Sample) -> dict[str, dict[str, float]]:
    """Values by name and labels, as a scrape has them, of the families of these samples."""
    registry = CollectorRegistry()
    registry.register(ProcessCollector(LABELS))
    with published(Fixed(*samples)):
        text = generate_latest(registry).decode()
    names = {sample.family.name for sample in samples}
    return {
        metric.name: {f"{s.name}{sorted(s.labels.items())}": s.value for s in metric.samples}
        for metric in text_string_to_metric_families(text)
        if metric.name in names or f"{metric.name}_total" in names
    }


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_family_is_named_as_prometheus_advises(family: Family) -> None:
    assert re.fullmatch(r"pretrain_[a-z0-9_]*[a-z0-9]", family.name)
    assert family.name.endswith("_total") == (family.kind == "counter")
    assert family.name.removesuffix("_total").endswith(UNITS.get(family.unit, ""))
    assert family.help.endswith(".")
    assert len(set(family.label_names)) == len(family.label_names)
    assert (family.buckets != ()) == (family.kind == "histogram")
    assert all(low < high for low, high in pairwise(family.buckets))


def test_no_name_is_given_twice() -> None:
    assert len({family.name for family in FAMILIES}) == len(FAMILIES)


def test_a_sample_carries_the_labels_of_its_job_and_its_own() -> None:
    found = exposed(Sample(JOB_TIME, 1.5, ("step",)), Sample(JOB_TIME, 2.5, ("idle",)))

    labels = "('attempt', '2'), ('category', '{}'), ('job', 'j'), ('namespace', 'n')"
    assert found["pretrain_job_time_seconds"] == {
        f"pretrain_job_time_seconds_total[{labels.format('step')}]": 1.5,
        f"pretrain_job_time_seconds_total[{labels.format('idle')}]": 2.5,
    }


def test_what_has_no_value_is_not_exported() -> None:
    assert exposed(Sample(GLOBAL_STEP, None), Sample(ACCELERATOR_MEMORY, 1.0)).keys() == {
        "pretrain_accelerator_memory_peak_bytes"
    }


def test_a_source_is_heard_only_while_it_is_published() -> None:
    registry = CollectorRegistry()
    registry.register(ProcessCollector(LABELS))
    with published(Fixed(Sample(GLOBAL_STEP, 7.0))):
        during = generate_latest(registry).decode()
    after = generate_latest(registry).decode()

    assert "\npretrain_global_step{" in during
    assert "pretrain_global_step" not in after


@given(st.lists(st.floats(0.0, 1000.0)))
def test_a_bucket_counts_what_is_at_most_its_bound(values: list[float]) -> None:
    histogram = Histogram(STEP_DURATION)
    for value in values:
        histogram.observe(value)

    counted = histogram.sample().value

    assert isinstance(counted, Counted)
    assert counted.count == len(values)
    assert counted.total == pytest.approx(sum(values))
    for bound, count in counted.buckets:
        assert count == sum(value <= bound for value in values)


def test_a_histogram_is_exposed_with_an_infinite_bucket() -> None:
    histogram = Histogram(STEP_DURATION)
    histogram.observe(0.05)
    histogram.observe(1e6)

    found = exposed(histogram.sample())["pretrain_step_duration_seconds"]

    counts = {re.search(r"'le', '([^']*)'", key): value for key, value in found.items()}
    by_bound = {match.group(1): value for match, value in counts.items() if match}
    assert by_bound["0.05"] == 1
    assert by_bound["250.0"] == 1
    assert by_bound["+Inf"] == 2
