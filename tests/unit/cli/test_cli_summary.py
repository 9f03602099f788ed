"""The summary of a complete run tells what was made and learned, as far as that is known."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pretrain_api.job import PretrainJob
from pretrain_api.status import GoodputStatus, PretrainJobStatus, StageStatus
from pretrainctl.local.summary import count_parameters, read_training, summary

START = datetime(2026, 1, 1, tzinfo=UTC)
TRAINING = {
    "steps": 2500,
    "curve": [{"loss": 8.631}, {"loss": None}, {"loss": 3.752}],
    "evaluations": [
        {"validation": {"loss": 6.5, "accuracy": 0.06}},
        {"validation": {"loss": 3.81, "accuracy": 0.361}},
    ],
}
METRICS = {
    "sentiment/pretrained/accuracy/mean": 0.722,
    "sentiment/pretrained/accuracy/stdev": 0.0031,
    "sentiment/random/accuracy/mean": 0.698,
    "sentiment/random/accuracy/stdev": 0.004,
}


def job(*, metrics: dict[str, float] | None = None, cached: bool = False) -> PretrainJob:
    task = {"name": "sentiment", "data": {"uri": "t.jsonl"}, "metrics": ["accuracy", "f1"]}
    done = PretrainJob.model_validate(
        {
            "apiVersion": "pretrain.dev/v1alpha1",
            "kind": "PretrainJob",
            "metadata": {"name": "demo"},
            "spec": {
                "corpus": {"sources": [{"uri": "a.txt"}]},
                "model": {"architecture": "modernbert"},
                "evaluation": {"tasks": [task]},
            },
        }
    )
    status = PretrainJobStatus(
        start_time=START,
        completion_time=START + timedelta(seconds=200),
        stages=[StageStatus(name="train", state="Complete", cached=cached)],
        metrics=metrics or {},
    )
    return done.model_copy(update={"status": status})


def write_weights(directory: Path) -> None:
    header: dict[str, Any] = {
        "__metadata__": {"format": "pt"},
        "a": {"dtype": "F32", "shape": [1000, 1200], "data_offsets": [0, 4_800_000]},
        "b": {"dtype": "F32", "shape": [7], "data_offsets": [4_800_000, 4_800_028]},
    }
    text = json.dumps(header).encode()
    (directory / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text)


def test_a_newcomer_reads_what_was_made_how_well_it_learned_and_where_it_is(
    tmp_path: Path,
) -> None:
    write_weights(tmp_path)
    text = summary(job(metrics=METRICS), export=tmp_path, training=TRAINING)
    assert text.splitlines() == [
        "Job demo is complete after 3m20s.",
        "",
        "Model       modernbert, 1.2M parameters",
        "",
        "Training    loss             8.63 -> 3.75  (2,500 steps)",
        "            validation loss  6.50 -> 3.81  (text that was held out)",
        "            36.1% of its tokens predicted right",
        "",
        "Evaluation  sentiment           pretrained    random weights        difference",
        "            accuracy         0.722 ± 0.003     0.698 ± 0.004            +0.024",
        "            Mean ± standard deviation over the seeds; fine-tuned alike from different",
        "            weights, so the difference is what pretraining brought.",
        "",
        f"Export      {tmp_path}  (README.md there is the model card)",
        "            Hugging Face's AutoModel and AutoTokenizer load this directory.",
    ]


def test_it_tells_how_much_of_the_time_went_into_training(tmp_path: Path) -> None:
    done = job()
    goodput = GoodputStatus(seconds={"step": 90, "queued": 30}, ratio=0.75)
    done = done.model_copy(update={"status": done.status.model_copy(update={"goodput": goodput})})

    text = summary(done, export=tmp_path, training=None)

    assert "goodput          75% of 2m00s went into steps and evaluation\n" in text


def test_what_is_not_known_is_left_out(tmp_path: Path) -> None:
    lines = summary(job(), export=tmp_path, training=None).splitlines()
    assert "Model       modernbert" in lines
    assert not any(line.startswith(("Training", "Evaluation")) for line in lines)


def test_without_random_weights_there_is_nothing_to_compare(tmp_path: Path) -> None:
    pretrained = {name: value for name, value in METRICS.items() if "pretrained" in name}
    text = summary(job(metrics=pretrained), export=tmp_path, training=None)
    assert "accuracy         0.722 ± 0.003\n" in text
    assert "random weights" not in text


def test_weights_of_an_earlier_run_are_told(tmp_path: Path) -> None:
    text = summary(job(cached=True), export=tmp_path, training=TRAINING)
    assert "was done by an earlier run" in text


def test_weights_in_several_files_are_not_counted(tmp_path: Path) -> None:
    assert count_parameters(tmp_path / "model.safetensors") is None


def test_a_curve_that_is_missing_or_damaged_is_none(tmp_path: Path) -> None:
    file = tmp_path / "training.json"
    assert read_training(file) is None
    file.write_text("{")
    assert read_training(file) is None
