"""The evaluation stage: every task, seed and initialisation is one run with a file of its own.

A stage that was stopped goes on with the runs that have no file yet.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import torch
from pretrain_api.reports import StageResult
from pretrain_api.spec.evaluation import TaskSpec
from pretrain_api.stages import EvaluateStageConfig
from pydantic import BaseModel, ValidationError

from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.evaluate.classifier import build_classifier, longest_input
from pretrain_jobs.evaluate.data import load_task_data, training_subset
from pretrain_jobs.evaluate.encode import encode_texts, padding_id
from pretrain_jobs.evaluate.figures import RunFigures
from pretrain_jobs.evaluate.finetune import Samples, count_steps, fine_tune, predict
from pretrain_jobs.evaluate.metrics import measure
from pretrain_jobs.evaluate.results import (
    KIND,
    RESULTS_FILE,
    Initialisation,
    Results,
    RunResult,
    TaskResult,
    initialisations,
    run_key,
    summarise,
)
from pretrain_jobs.process import load_config
from pretrain_jobs.progress import ProgressReporter
from pretrain_jobs.storage import NotFoundError, ObjectStore, open_store
from pretrain_jobs.storage.artifact import (
    FileEntry,
    commit,
    download_artifact,
    is_committed,
    load,
)
from pretrain_jobs.telemetry.samples import published

PREDICTION_BATCHES = 4
"""Batches of the test are this many times as large as those of the training."""


@dataclass(frozen=True)
class _Task:
    """A task with its samples encoded once for all of its runs."""

    spec: TaskSpec
    labels: tuple[str, ...]
    train: Samples
    test: Samples

    def training(self, seed: int) -> Samples:
        count = len(self.train.encoded)
        limit = self.spec.data.max_train_samples
        return self.train.at(training_subset(count, limit, seed=seed))

    def runs(self) -> Iterator[tuple[Initialisation, int]]:
        for initialisation in initialisations(self.spec):
            for seed in self.spec.seeds:
                yield initialisation, seed

    def steps(self, seed: int) -> int:
        return count_steps(len(self.training(seed).encoded), self.spec.fine_tuning)


@dataclass(frozen=True)
class _Bench:
    """What every run needs: the model's directory, the device, and where results go."""

    model: Path
    padding: int
    device: torch.device
    store: ObjectStore


def main(config_path: Path) -> StageResult:
    """Run the stage; the result has mean and spread of every task, weights and metric."""
    config = load_config(EvaluateStageConfig, config_path)
    store = open_store(config.storage, config.evaluation_uri)
    if is_committed(store, kind=KIND, fingerprint=config.evaluation_fingerprint):
        return _stage_result(Results.model_validate_json(store.read(RESULTS_FILE)))
    _check_types(config.evaluation.tasks)
    torch.set_num_threads(config.workers.threads_per_process)
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    with tempfile.TemporaryDirectory(prefix="pretrain-evaluate-") as scratch:
        results = _evaluate(config, store, Path(scratch))
    _commit(store, results, config.evaluation_fingerprint)
    return _stage_result(results)


def _check_types(tasks: list[TaskSpec]) -> None:
    for number, task in enumerate(tasks):
        if task.type != "sequenceClassification":
            raise UserError(
                f"evaluation.tasks.{number}.type is {task.type}; only sequenceClassification can "
                "be run yet"
            )


def _evaluate(config: EvaluateStageConfig, store: ObjectStore, scratch: Path) -> Results:
    progress = ProgressReporter("evaluate", attempt=config.attempt)
    progress.update(message="reading the model and the tasks", unit="steps", force=True)
    directory = scratch / "model"
    _download_model(config, directory)
    bench = _Bench(
        model=directory,
        padding=padding_id(directory),
        device=_device(config.workers.device),
        store=store,
    )
    tasks = [_prepare(task, config, bench, scratch / task.name) for task in config.evaluation.tasks]
    report = _Steps(progress, total=sum(t.steps(seed) for t in tasks for _, seed in t.runs()))
    with published(report.figures):
        return Results(tasks=[_run_task(task, bench, report) for task in tasks])


def _download_model(config: EvaluateStageConfig, directory: Path) -> None:
    store = open_store(config.storage, config.model_uri)
    manifest = load(store, kind="model", fingerprint=config.model_fingerprint)
    if manifest is None:
        raise DataError(f"{config.model_uri} holds no committed model: training has not ended")
    download_artifact(store, manifest, directory)


def _device(wanted: str) -> torch.device:
    """CUDA where the workers use it and this process has it, else the CPU."""
    use_cuda = wanted != "cpu" and torch.cuda.is_available()
    return torch.device("cuda" if use_cuda else "cpu")


def _prepare(task: TaskSpec, config: EvaluateStageConfig, bench: _Bench, scratch: Path) -> _Task:
    data = load_task_data(task.data, config.storage, scratch)
    length = min(task.fine_tuning.max_length, longest_input(bench.model))
    return _Task(
        spec=task,
        labels=data.labels,
        train=Samples(
            encode_texts(data.train_texts, bench.model, max_length=length), data.train_classes
        ),
        test=Samples(
            encode_texts(data.test_texts, bench.model, max_length=length), data.test_classes
        ),
    )


@dataclass
class _Steps:
    """Progress over the optimizer steps of all runs, and the figures of those done."""

    progress: ProgressReporter
    total: int
    done: int = 0
    figures: RunFigures = field(default_factory=RunFigures)

    def begin(self, message: str) -> None:
        self.progress.update(total=self.total, message=message, force=True)

    def advance(self, steps: int = 1) -> None:
        self.done += steps
        self.progress.update(done=self.done)


def _run_task(task: _Task, bench: _Bench, report: _Steps) -> TaskResult:
    runs = []
    for initialisation, seed in task.runs():
        run = _run(task, initialisation, seed, bench, report)
        report.figures.add(run)
        runs.append(run)
    return summarise(task.spec, labels=task.labels, runs=runs)


def _run(
    task: _Task, initialisation: Initialisation, seed: int, bench: _Bench, report: _Steps
) -> RunResult:
    report.begin(f"{task.spec.name}, {initialisation} weights, seed {seed}")
    done = _stored_run(bench.store, run_key(task.spec.name, initialisation, seed))
    if done is not None:
        report.advance(done.steps)
        return done
    result = _fine_tune_and_measure(task, initialisation, seed, bench, report.advance)
    bench.store.write(result.key, _encode(result))
    return result


def _fine_tune_and_measure(
    task: _Task,
    initialisation: Initialisation,
    seed: int,
    bench: _Bench,
    advance: Callable[[], None],
) -> RunResult:
    tuning = task.spec.fine_tuning
    samples = task.training(seed)
    model = build_classifier(
        bench.model, initialisation, classes=len(task.labels), padding=bench.padding, seed=seed
    )
    fine_tune(
        model,
        samples,
        tuning,
        seed=seed,
        padding=bench.padding,
        device=bench.device,
        progress=advance,
    )
    predicted = predict(
        model,
        task.test,
        batch_size=tuning.batch_size * PREDICTION_BATCHES,
        padding=bench.padding,
        device=bench.device,
    )
    return RunResult(
        task=task.spec.name,
        initialisation=initialisation,
        seed=seed,
        train_samples=len(samples.encoded),
        test_samples=len(predicted),
        steps=task.steps(seed),
        metrics=measure(task.test.classes, predicted, task.spec.metrics),
    )


def _stored_run(store: ObjectStore, key: str) -> RunResult | None:
    """A run that an earlier attempt finished; None when there is none that can be read."""
    try:
        return RunResult.model_validate_json(store.read(key))
    except (NotFoundError, ValidationError):
        return None


def _encode(model: BaseModel) -> bytes:
    return model.model_dump_json(by_alias=True, indent=1).encode() + b"\n"


def _commit(store: ObjectStore, results: Results, fingerprint: str) -> None:
    data = _encode(results)
    store.write(RESULTS_FILE, data)
    files = [_entry(RESULTS_FILE, data)]
    files += [_entry(run.key, _encode(run)) for task in results.tasks for run in task.runs]
    commit(store, kind=KIND, fingerprint=fingerprint, files=files, extra={})


def _entry(key: str, data: bytes) -> FileEntry:
    return FileEntry(path=key, size=len(data), sha256=hashlib.sha256(data).hexdigest())


def _stage_result(results: Results) -> StageResult:
    runs = [run for task in results.tasks for run in task.runs]
    return StageResult(metrics=results.flat(), counts={"runs": len(runs)})
