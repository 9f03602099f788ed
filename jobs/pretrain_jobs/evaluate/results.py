"""Figures of an evaluation: of every run, and what they come to. No torch here.

`results.json` is a `Results`; a run's own file is a `RunResult`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Annotated, Literal

from pretrain_api.base import Message
from pretrain_api.spec.evaluation import TaskSpec
from pydantic import Field

RESULTS_FILE = "results.json"
KIND = "evaluation"

Initialisation = Literal["pretrained", "random"]


class RunResult(Message):
    """One fine-tuning: which, on how many samples, and its figures on the test by metric."""

    task: str
    initialisation: Initialisation
    seed: int
    train_samples: int
    test_samples: int
    steps: int
    metrics: dict[str, float]

    @property
    def key(self) -> str:
        """Where the run's own file lies in the evaluation."""
        return run_key(self.task, self.initialisation, self.seed)


class Figure(Message):
    """Mean and sample standard deviation over seeds; the latter is 0 for a single seed."""

    mean: float
    stdev: Annotated[float, Field(ge=0.0)]


class TaskResult(Message):
    """A task's figures by initialisation and metric; `difference` is pretrained minus random."""

    name: str
    labels: list[str]
    runs: list[RunResult]
    figures: dict[Initialisation, dict[str, Figure]]
    difference: dict[str, float]


class Results(Message):
    """All tasks, in the order of the spec."""

    tasks: list[TaskResult]

    def flat(self) -> dict[str, float]:
        """Figures by keys such as sentiment/pretrained/accuracy/mean."""
        return {
            f"{task.name}/{initialisation}/{metric}/{name}": value
            for task in self.tasks
            for initialisation, figures in task.figures.items()
            for metric, figure in figures.items()
            for name, value in (("mean", figure.mean), ("stdev", figure.stdev))
        }


def run_key(task: str, initialisation: Initialisation, seed: int) -> str:
    """Key of a run's own file."""
    return f"runs/{task}-{initialisation}-{seed}.json"


def initialisations(task: TaskSpec) -> tuple[Initialisation, ...]:
    """The weights that a task is fine-tuned from."""
    return ("pretrained", "random") if task.compare_with_random else ("pretrained",)


def summarise(task: TaskSpec, *, labels: Sequence[str], runs: Sequence[RunResult]) -> TaskResult:
    """Mean and spread over the seeds of each initialisation, and what pretraining brought."""
    figures: dict[Initialisation, dict[str, Figure]] = {
        initialisation: {
            metric: _figure(
                [run.metrics[metric] for run in runs if run.initialisation == initialisation]
            )
            for metric in task.metrics
        }
        for initialisation in initialisations(task)
    }
    random = figures.get("random", {})
    return TaskResult(
        name=task.name,
        labels=list(labels),
        runs=list(runs),
        figures=figures,
        difference={
            metric: figures["pretrained"][metric].mean - figure.mean
            for metric, figure in random.items()
        },
    )


def _figure(values: Sequence[float]) -> Figure:
    spread = statistics.stdev(values) if len(values) > 1 else 0.0
    return Figure(mean=statistics.fmean(values), stdev=spread)
