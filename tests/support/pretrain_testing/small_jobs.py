"""The quickstart made small: real stages on real text, done in a minute."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pretrainctl.samples.demo_corpus import load_demo_corpus

QUICKSTART = Path(__file__).parents[3] / "crds/samples/quickstart.yaml"
DOCUMENTS = 800
"""Lines that are kept of each of the quickstart's files."""

STEPS = 480
"""Steps of a training that is under way for long enough to be disturbed."""


def small_quickstart(*, name: str = "quickstart", steps: int = 60) -> dict[str, Any]:
    """The quickstart's manifest with a model, a vocabulary and tasks of toy size."""
    job: dict[str, Any] = yaml.safe_load(QUICKSTART.read_text(encoding="utf-8"))
    job["metadata"]["name"] = name
    spec = job["spec"]
    spec["tokenizer"]["train"]["vocabSize"] = 1000
    spec["model"]["config"] |= {"hidden_size": 32, "intermediate_size": 64}
    spec["training"] |= {"maxSteps": steps, "evaluation": {"everySteps": steps // 3}}
    spec["training"]["schedule"]["warmupSteps"] = 5
    spec["checkpoint"] = {"everySteps": steps // 12}
    task = spec["evaluation"]["tasks"][0]
    task["seeds"] = [1, 2]
    task["data"] |= {"maxTrainSamples": 64, "maxTestSamples": 64}
    task["fineTuning"]["epochs"] = 1
    return job


def without_evaluation(job: dict[str, Any]) -> dict[str, Any]:
    """The job with nothing between training and export."""
    return {**job, "spec": {**job["spec"], "evaluation": {"tasks": []}}}


def small_data() -> Iterator[tuple[str, bytes]]:
    """Key under the storage and content of each file that the small quickstart reads."""
    for name, content in load_demo_corpus().files().items():
        yield name, b"".join(content.splitlines(keepends=True)[:DOCUMENTS])


def training_job(*, name: str, steps: int = STEPS) -> dict[str, Any]:
    """The small quickstart with nothing to evaluate, training for long enough to be disturbed."""
    return without_evaluation(small_quickstart(name=name, steps=steps))
