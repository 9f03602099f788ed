"""The figures of the runs done so far, for whoever scrapes the evaluation's pod."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator

from pretrain_jobs.evaluate.results import RunResult
from pretrain_jobs.telemetry import families
from pretrain_jobs.telemetry.samples import Sample


class RunFigures:
    """A source of samples: each metric's mean over the seeds done, by task and weights."""

    def __init__(self) -> None:
        self._runs: tuple[RunResult, ...] = ()

    def add(self, run: RunResult) -> None:
        """Take note of a finished run."""
        self._runs = (*self._runs, run)

    def samples(self) -> Iterator[Sample]:
        """Samples of the runs so far."""
        values: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for run in self._runs:
            for metric, value in run.metrics.items():
                values[run.task, run.initialisation, metric].append(value)
        for labels, figures in values.items():
            yield Sample(families.EVALUATION_METRIC, statistics.fmean(figures), labels)
