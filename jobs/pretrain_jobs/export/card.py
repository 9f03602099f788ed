"""The model card: README.md of the export, a pure function of facts.

No dates and no durations, so that equal artifacts give equal bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pretrain_jobs.evaluate.results import TaskResult
from pretrain_jobs.export.facts import Facts

CURVE_POINTS = 12
"""Rows of the training curve, the first and the last step among them."""

_LIMITS = (
    "The model knows what its corpus holds and nothing else. The corpus was not checked for "
    "prejudice, falsehood or personal data beyond the cleaning named above, and the model may "
    "repeat what it read.",
    "It was trained on samples of {length} tokens; texts longer than {positions} must be cut.",
)
_EVALUATED = (
    "The evaluation covers the tasks of the table, fine-tuned with a few seeds; it says little "
    "about other tasks, domains and languages."
)
_NOT_EVALUATED = "The model was not evaluated on any task."


def model_card(facts: Facts) -> str:
    """The whole card in Markdown, with its YAML front matter."""
    sections = [
        _front_matter(facts),
        f"# {_title(facts)}",
        facts.config.export.model_card.description or _summary(facts),
        _section("Use", _usage(facts)),
        _section("Model", _model_table(facts)),
        _section("Data", _data(facts)),
        _section("Training", _training(facts)),
        _section("Evaluation", _evaluation(facts)),
        _section("Lineage", _lineage(facts)),
        _section("Limits", _limits(facts)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _title(facts: Facts) -> str:
    return facts.config.export.model_card.title or facts.config.job.name


def _section(heading: str, body: str) -> str:
    return f"## {heading}\n\n{body}" if body else ""


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A Markdown table; `|` in a cell is escaped."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(
        f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in line)} |"
        for line in lines
    )


def _front_matter(facts: Facts) -> str:
    """YAML whose values are written as JSON, which every YAML reader takes."""
    card = facts.config.export.model_card
    values: dict[str, Any] = {
        "library_name": "transformers",
        "pipeline_tag": "fill-mask" if facts.model.masked else "text-generation",
        "tags": [facts.model.model_type, "pretrain-operator"],
    }
    if card.language:
        values["language"] = card.language
    if card.license:
        values["license"] = card.license
    if facts.results:
        values["model-index"] = [
            {"name": _title(facts), "results": [_index(task) for task in facts.results.tasks]}
        ]
    lines = [f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in values.items()]
    return "\n".join(["---", *lines, "---"])


def _index(task: TaskResult) -> dict[str, Any]:
    return {
        "task": {"type": "text-classification"},
        "dataset": {"name": task.name, "type": task.name},
        "metrics": [
            {"type": metric, "value": round(figure.mean, 6)}
            for metric, figure in task.figures["pretrained"].items()
        ],
    }


def _summary(facts: Facts) -> str:
    objective = "masked" if facts.model.masked else "causal"
    return (
        f"A {facts.model.model_type} language model of {facts.model.parameters:,} parameters, "
        f"trained from scratch on a {objective} objective with pretrain-operator."
    )


def _usage(facts: Facts) -> str:
    auto = "AutoModelForMaskedLM" if facts.model.masked else "AutoModelForCausalLM"
    return "\n".join(
        [
            "```python",
            f"from transformers import {auto}, AutoTokenizer",
            "",
            'tokenizer = AutoTokenizer.from_pretrained("path/to/this/directory")',
            f'model = {auto}.from_pretrained("path/to/this/directory")',
            "```",
        ]
    )


def _model_table(facts: Facts) -> str:
    model = facts.model
    tied = " (tied to the input embedding, stored once)" if model.tied else ""
    return table(
        ["Property", "Value"],
        [
            ["Architecture", model.model_type],
            ["Parameters", f"{model.parameters:,}"],
            ["Tokens of the tokenizer", f"{model.tokens:,}"],
            ["Rows of the embedding", f"{model.rows:,}"],
            ["Positions", f"{model.positions:,}"],
            ["Type of the weights", model.dtype],
            ["Key of the output matrix", f"`{model.output_key}`{tied}"],
        ],
    )


def _data(facts: Facts) -> str:
    spec = facts.config.spec
    sources = "\n".join(f"- `{source.uri}`" for source in spec.corpus.sources)
    sources = f"{sources}\n\n{_cleaning(facts)}"
    if facts.dataset is None:
        return sources
    counts = table(
        ["Split", "Documents", "Tokens"],
        [
            [split, f"{facts.dataset.documents(split):,}", f"{facts.dataset.tokens(split):,}"]
            for split in sorted(facts.dataset.splits)
        ],
    )
    statistics = facts.dataset.statistics
    removed = sum(statistics.removed.values()) + sum(statistics.rejects.values())
    note = (
        f"Of {statistics.documents_read:,} documents read, {removed:,} were removed or refused. "
        f"A token stands for {statistics.characters_per_token:.2f} characters; "
        f"{statistics.unknown_rate:.4%} of the tokens are unknown."
    )
    return f"{sources}\n\n{counts}\n\n{note}"


def _cleaning(facts: Facts) -> str:
    asked = facts.config.spec.corpus.cleaning.model_dump(
        mode="json", by_alias=True, exclude_defaults=True
    )
    if not asked:
        return "Cleaning: empty documents were removed, nothing else."
    return f"Cleaning: `{json.dumps(asked, ensure_ascii=False)}`."


def _training(facts: Facts) -> str:
    parts = [_hyperparameters(facts), _curve(facts), _validation(facts)]
    return "\n\n".join(part for part in parts if part)


def _hyperparameters(facts: Facts) -> str:
    """What decided the weights, in the words of the spec; defaults included."""
    spec, document = facts.config.spec, facts.training
    training = document.get("training") or spec.training.model_dump(mode="json", by_alias=True)
    chosen = {
        "objective": spec.objective.model_dump(mode="json", by_alias=True, exclude_none=True),
        "sequenceLength": spec.preprocess.sequence_length,
        "packing": spec.preprocess.packing.strategy,
        **{name: value for name, value in training.items() if name not in _NO_HYPERPARAMETERS},
        "worldSize": document.get("worldSize"),
        "steps": document.get("steps"),
        "samples": document.get("samples"),
        "epochs": document.get("epochs"),
        "tokens": document.get("tokens"),
    }
    rows = [[name, f"`{_plain(value)}`"] for name, value in chosen.items() if value is not None]
    return table(["Hyperparameter", "Value"], rows)


_NO_HYPERPARAMETERS = frozenset({"logging", "evaluation", "hooks", "compile", "anomalies"})


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _curve(facts: Facts) -> str:
    points = sampled(facts.training.get("curve", []), CURVE_POINTS)
    if not points:
        return ""
    rows = [
        [point["step"], _figure(point.get("loss")), _figure(point.get("learningRate"))]
        for point in points
    ]
    return f"{_heading('Loss')}\n\n{table(['Step', 'Training loss', 'Learning rate'], rows)}"


def _validation(facts: Facts) -> str:
    points = sampled(facts.training.get("evaluations", []), CURVE_POINTS)
    rows = [
        [point["step"], *(_figure(point["validation"].get(name)) for name in _VALIDATION)]
        for point in points
    ]
    if not rows:
        return ""
    heading = _heading("Validation")
    return f"{heading}\n\n{table(['Step', 'Loss', 'Perplexity', 'Accuracy'], rows)}"


_VALIDATION = ("loss", "perplexity", "accuracy")


def _heading(text: str) -> str:
    return f"### {text}"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def sampled(points: Sequence[Any], most: int) -> list[Any]:
    """At most `most` points, evenly spread, the first and the last among them."""
    if len(points) <= most:
        return list(points)
    last = len(points) - 1
    return [points[round(i * last / (most - 1))] for i in range(most)]


def _evaluation(facts: Facts) -> str:
    if facts.results is None:
        return ""
    rows = [row for task in facts.results.tasks for row in _evaluation_rows(task)]
    header = ["Task", "Metric", "Pretrained", "Random weights", "Difference", "Seeds"]
    note = (
        "Mean ± standard deviation over the seeds of fine-tuning, on held-out examples. `f1` is "
        "macro-averaged. Random weights have the same architecture and the same fine-tuning."
    )
    return f"{table(header, rows)}\n\n{note}"


def _evaluation_rows(task: TaskResult) -> Iterable[list[str]]:
    seeds = str(len({run.seed for run in task.runs}))
    for metric, figure in task.figures["pretrained"].items():
        random = task.figures.get("random", {}).get(metric)
        yield [
            task.name,
            metric,
            f"{figure.mean:.4f} ± {figure.stdev:.4f}",
            "" if random is None else f"{random.mean:.4f} ± {random.stdev:.4f}",
            "" if random is None else f"{task.difference[metric]:+.4f}",
            seeds,
        ]


def lineage(facts: Facts) -> dict[str, str]:
    """Fingerprints of the artifacts that the export came from; unknown ones are left out."""
    found = {
        "tokenizerSha256": facts.dataset.tokenizer_sha256 if facts.dataset else "",
        "dataset": facts.config.dataset_fingerprint,
        "model": facts.config.model_fingerprint,
        "evaluation": facts.evaluation_fingerprint,
        "export": facts.config.export_fingerprint,
    }
    return {name: value for name, value in found.items() if value}


def _lineage(facts: Facts) -> str:
    rows = [[name, f"`{value}`"] for name, value in lineage(facts).items()]
    return table(["Artifact", "Fingerprint"], rows)


def _limits(facts: Facts) -> str:
    limits = (*_LIMITS, _NOT_EVALUATED if facts.results is None else _EVALUATED)
    length = facts.config.spec.preprocess.sequence_length
    text = "\n".join(f"- {limit}" for limit in limits)
    return text.format(length=length, positions=facts.model.positions)
