"""The last words of a complete run, for somebody who sees such a job for the first time.

Text from values; what is not known is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain_api.job import PretrainJob
from pretrain_api.spec.evaluation import TaskSpec
from pretrain_api.status import PretrainJobStatus

from pretrainctl.local.figures import duration, quantity

WEIGHTS_FILE = "model.safetensors"
LABEL_WIDTH = 12
TITLES = ("pretrained", "random weights", "difference")


@dataclass(frozen=True)
class Change:
    """A figure at the beginning and at the end of training."""

    first: float
    last: float

    def __str__(self) -> str:
        return f"{self.first:.2f} -> {self.last:.2f}"


def summary(job: PretrainJob, *, export: Path, training: Mapping[str, Any] | None) -> str:
    """What was made, how well it learned, and where it is; `training` is training.json."""
    sections = {
        "Model": _model(job, export),
        "Training": list(_training(job.status, training or {})),
        "Evaluation": _evaluation(job),
        "Export": _export(export),
    }
    lines = [f"Job {job.metadata.name} is complete{_time(job.status)}.", ""]
    for title, section in sections.items():
        for number, line in enumerate(section):
            lines.append(f"{'' if number else title:{LABEL_WIDTH}}{line}".rstrip())
        lines += [""] if section else []
    return "\n".join(lines[:-1])


def read_training(path: Path) -> dict[str, Any] | None:
    """training.json, None if there is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content


def count_parameters(weights: Path) -> int | None:
    """Parameters of a safetensors file, from its header; None for weights in several files.

    Source: https://github.com/huggingface/safetensors#format
    """
    if not weights.is_file():
        return None
    with weights.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header: dict[str, Any] = json.loads(stream.read(length))
    header.pop("__metadata__", None)
    return sum(_product(tensor["shape"]) for tensor in header.values())


def _product(shape: list[int]) -> int:
    result = 1
    for size in shape:
        result *= size
    return result


def _time(status: PretrainJobStatus) -> str:
    if status.start_time is None or status.completion_time is None:
        return ""
    return f" after {duration((status.completion_time - status.start_time).total_seconds())}"


def _model(job: PretrainJob, export: Path) -> list[str]:
    name = job.spec.model.preset or job.spec.model.architecture or "model"
    parameters = count_parameters(export / WEIGHTS_FILE)
    return [name if parameters is None else f"{name}, {quantity(parameters)} parameters"]


def _training(status: PretrainJobStatus, training: Mapping[str, Any]) -> Iterator[str]:
    if any(stage.name == "train" and stage.cached for stage in status.stages):
        yield "the same training was done by an earlier run, whose weights are used"
    losses = [line["loss"] for line in training.get("curve", ()) if line.get("loss") is not None]
    if losses:
        yield f"loss             {Change(losses[0], losses[-1])}  ({training['steps']:,} steps)"
    validation = [line["validation"] for line in training.get("evaluations", ())]
    if validation:
        change = Change(validation[0]["loss"], validation[-1]["loss"])
        yield f"validation loss  {change}  (text that was held out)"
        accuracy = validation[-1].get("accuracy")
        yield from [] if accuracy is None else [f"{accuracy:.1%} of its tokens predicted right"]
    goodput = status.goodput
    if goodput is not None and goodput.ratio is not None:
        spent = duration(sum(goodput.seconds.values()))
        yield f"goodput          {goodput.ratio:.0%} of {spent} went into steps and evaluation"


def _evaluation(job: PretrainJob) -> list[str]:
    lines = [line for task in job.spec.evaluation.tasks for line in _table(task, job.status)]
    if any("random" in line for line in lines):
        lines += [
            "Mean ± standard deviation over the seeds; fine-tuned alike from different",
            "weights, so the difference is what pretraining brought.",
        ]
    return lines


def _table(task: TaskSpec, status: PretrainJobStatus) -> Iterator[str]:
    rows = list(_rows(task, status.metrics))
    for number, row in enumerate(rows):
        if number == 0:
            yield _columns(task.name, *TITLES[: len(row) - 1])
        yield _columns(*row)


def _columns(first: str, *others: str) -> str:
    return f"{first:12}" + "".join(f"{cell:>18}" for cell in others)


def _rows(task: TaskSpec, metrics: Mapping[str, float]) -> Iterator[tuple[str, ...]]:
    for metric in task.metrics:
        cells = [_cell(task.name, start, metric, metrics) for start in ("pretrained", "random")]
        known = [cell for cell in cells if cell]
        if len(known) == 2:
            means = [metrics[f"{task.name}/{s}/{metric}/mean"] for s in ("pretrained", "random")]
            known.append(f"{means[0] - means[1]:+.3f}")
        if known:
            yield metric, *known


def _cell(task: str, start: str, metric: str, metrics: Mapping[str, float]) -> str:
    mean = metrics.get(f"{task}/{start}/{metric}/mean")
    if mean is None:
        return ""
    return f"{mean:.3f} ± {metrics.get(f'{task}/{start}/{metric}/stdev', 0.0):.3f}"


def _export(export: Path) -> list[str]:
    return [
        f"{export}  (README.md there is the model card)",
        "Hugging Face's AutoModel and AutoTokenizer load this directory.",
    ]
