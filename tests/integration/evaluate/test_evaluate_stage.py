"""The evaluation stage over tiny models of every architecture. About 25 seconds."""

import json
import shutil
import signal
from pathlib import Path

import pytest
import torch
from pretrain_api.spec.evaluation import EvaluationSpec, FineTuningSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.spec.workers import WorkersSpec
from pretrain_api.stages import EvaluateStageConfig, JobRef
from pretrain_jobs.errors import DataError, UserError
from pretrain_jobs.evaluate.classifier import build_classifier
from pretrain_jobs.evaluate.encode import encode_texts
from pretrain_jobs.evaluate.finetune import Samples, fine_tune, predict
from pretrain_jobs.evaluate.results import Results
from pretrain_jobs.evaluate.stage import main
from pretrain_jobs.storage import open_store
from pretrain_jobs.storage.artifact import is_committed
from pretrain_testing.dying_evaluation import run_and_die
from pretrain_testing.tiny_models import (
    ARCHITECTURES,
    MODEL_FINGERPRINT,
    commit_model,
    write_model,
)
from safetensors.torch import load_file

GOOD, BAD = "天气很好，公园里有茶。", "火车慢，味道不错也要走三个小时。"
CPU = torch.device("cpu")


def task(**fields) -> dict:
    return {
        "name": "weather",
        "data": {"uri": "tasks/weather.jsonl"},
        "seeds": [1, 2],
        "fineTuning": {"epochs": 3, "batchSize": 8, "learningRate": 3e-3, "maxLength": 32},
    } | fields


class Bench:
    """A storage with a committed model and a task that a word decides."""

    def __init__(self, root: Path, architecture: str) -> None:
        self.root = root
        self.storage = StorageSpec(uri=(root / "storage").as_uri())
        self.model = write_model(root / "model", architecture)
        commit_model(self.storage, self.model)
        rows = [
            {"text": f"{GOOD if i % 2 else BAD}{i}", "label": "good" if i % 2 else "bad"}
            for i in range(60)
        ]
        data = root / "storage/tasks/weather.jsonl"
        data.parent.mkdir(parents=True)
        data.write_text("\n".join(json.dumps(row) for row in rows))

    @property
    def results(self) -> Path:
        return self.root / "storage/evaluations/e"

    def config(self, **fields) -> Path:
        config = EvaluateStageConfig(
            job=JobRef(namespace="default", name="job", uid="0"),
            storage=self.storage,
            model_uri=f"{self.storage.uri}/models/{MODEL_FINGERPRINT}",
            model_fingerprint=MODEL_FINGERPRINT,
            evaluation_uri=f"{self.storage.uri}/evaluations/e",
            evaluation_fingerprint="e" * 16,
            evaluation=EvaluationSpec.model_validate({"tasks": [task(**fields)]}),
            workers=WorkersSpec(device="cpu"),
        )
        path = self.root / "config.json"
        path.write_text(config.model_dump_json(by_alias=True))
        return path

    def committed(self) -> bool:
        store = open_store(self.storage, f"{self.storage.uri}/evaluations/e")
        return is_committed(store, kind="evaluation", fingerprint="e" * 16)

    def files(self) -> dict[str, bytes]:
        return {
            path.relative_to(self.results).as_posix(): path.read_bytes()
            for path in self.results.rglob("*.json")
        }


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architecture_learns_the_task(tmp_path, architecture):
    bench = Bench(tmp_path, architecture)
    tuning = {"epochs": 10, "batchSize": 8, "learningRate": 5e-3, "maxLength": 32}

    result = main(bench.config(fineTuning=tuning, seeds=[1], compareWithRandom=False))

    assert bench.committed()
    assert result.metrics["weather/pretrained/accuracy/mean"] > 0.8


def test_every_run_is_reported_and_a_committed_evaluation_is_not_run_again(tmp_path):
    bench = Bench(tmp_path, "gpt2")

    result = main(bench.config())

    assert result.counts == {"runs": 4}
    assert set(result.metrics) == {
        f"weather/{weights}/{metric}/{name}"
        for weights in ("pretrained", "random")
        for metric in ("accuracy", "f1", "mcc")
        for name in ("mean", "stdev")
    }
    stored = Results.model_validate_json((bench.results / "results.json").read_bytes())
    assert stored.flat() == result.metrics
    assert [(run.initialisation, run.seed) for run in stored.tasks[0].runs] == [
        ("pretrained", 1),
        ("pretrained", 2),
        ("random", 1),
        ("random", 2),
    ]
    assert all(run.test_samples == 12 for run in stored.tasks[0].runs)
    before = {path: path.stat().st_mtime_ns for path in bench.results.rglob("*.json")}

    assert main(bench.config()) == result
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_a_killed_stage_goes_on_with_the_runs_that_are_left(tmp_path):
    bench = Bench(tmp_path, "bert")
    config = bench.config()
    result = main(config)
    unbroken = bench.files()
    shutil.rmtree(bench.results)

    killed = run_and_die(config)
    kept = {path: path.stat().st_mtime_ns for path in bench.results.rglob("*.json")}
    again = main(config)

    assert killed == -signal.SIGKILL
    assert [path.name for path in kept] == ["weather-pretrained-1.json"]
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert bench.files() == unbroken
    assert again == result


def test_a_damaged_run_file_is_run_again(tmp_path):
    bench = Bench(tmp_path, "bert")
    main(bench.config())
    unbroken = bench.files()
    (bench.results / "manifest.json").unlink()
    (bench.results / "runs/weather-pretrained-1.json").write_bytes(b"{")

    main(bench.config())

    assert bench.files() == unbroken


def test_runs_have_as_many_training_samples_as_asked_for(tmp_path):
    bench = Bench(tmp_path, "bert")
    data = {"uri": "tasks/weather.jsonl", "maxTrainSamples": 20, "maxTestSamples": 5}

    main(bench.config(data=data, seeds=[1], compareWithRandom=False))

    run = (
        Results.model_validate_json((bench.results / "results.json").read_bytes()).tasks[0].runs[0]
    )
    assert (run.train_samples, run.test_samples, run.steps) == (20, 5, 9)


def test_a_longer_text_than_the_model_takes_is_cut(tmp_path):
    bench = Bench(tmp_path, "roberta")
    long = {"epochs": 1, "batchSize": 8, "maxLength": 4096}
    rows = [{"text": GOOD * 40, "label": i % 2} for i in range(20)]
    (tmp_path / "storage/tasks/weather.jsonl").write_text("\n".join(map(json.dumps, rows)))
    other = [{"text": BAD * 40 + str(i), "label": i % 2} for i in range(20)]
    (tmp_path / "storage/tasks/test.jsonl").write_text("\n".join(map(json.dumps, other)))
    data = {"uri": "tasks/weather.jsonl", "testUri": "tasks/test.jsonl"}

    result = main(bench.config(data=data, seeds=[1], fineTuning=long))

    assert result.counts == {"runs": 2}


def test_a_missing_model_is_named(tmp_path):
    bench = Bench(tmp_path, "bert")
    (tmp_path / f"storage/models/{MODEL_FINGERPRINT}/manifest.json").unlink()

    with pytest.raises(DataError, match=rf"models/{MODEL_FINGERPRINT} holds no committed model"):
        main(bench.config())


def test_a_type_of_task_that_is_not_there_yet_is_refused_by_name(tmp_path):
    bench = Bench(tmp_path, "bert")

    with pytest.raises(UserError, match=r"tasks\.0\.type is questionAnswering"):
        main(bench.config(type="questionAnswering"))


def test_a_model_without_its_trained_weights_is_refused(tmp_path):
    directory = write_model(tmp_path / "model", "bert")
    weights = load_file(directory / "model.safetensors")
    kept = {name: value for name, value in weights.items() if "layer.1.attention" not in name}
    from safetensors.torch import save_file

    save_file(kept, directory / "model.safetensors", metadata={"format": "pt"})

    with pytest.raises(DataError, match=r"lacks weights.*layer\.1\.attention"):
        build_classifier(directory, "pretrained", classes=2, padding=0, seed=1)


def test_the_classifier_starts_from_the_trained_weights_or_from_others(tmp_path):
    directory = write_model(tmp_path / "model", "modernbert")
    trained = load_file(directory / "model.safetensors")["model.layers.1.mlp.Wi.weight"]

    pretrained, random, again = (
        build_classifier(directory, kind, classes=2, padding=0, seed=3).state_dict()
        for kind in ("pretrained", "random", "random")
    )

    name = "model.layers.1.mlp.Wi.weight"
    assert torch.equal(pretrained[name], trained)
    assert not torch.equal(random[name], trained)
    assert torch.equal(random[name], again[name])


def test_a_model_saved_as_bf16_is_tuned_in_fp32(tmp_path):
    from transformers import AutoModelForMaskedLM

    directory = write_model(tmp_path / "model", "bert")
    AutoModelForMaskedLM.from_pretrained(directory, dtype=torch.bfloat16).save_pretrained(directory)
    name = "bert.encoder.layer.0.attention.self.query.weight"
    before = load_file(directory / "model.safetensors")[name]
    assert before.dtype == torch.bfloat16
    encoded = encode_texts([GOOD, BAD], directory, max_length=16)
    samples = Samples(encoded, torch.tensor([1, 0]).numpy())
    tuning = FineTuningSpec(epochs=3, learning_rate=1e-5, batch_size=2, warmup_ratio=0.0)

    model = build_classifier(directory, "pretrained", classes=2, padding=0, seed=1)
    fine_tune(model, samples, tuning, seed=1, padding=0, device=CPU, progress=lambda: None)

    after = dict(model.named_parameters())[name]
    assert after.dtype == torch.float32
    moved = after != before.float()
    assert moved.float().mean() > 0.9
    assert torch.equal(after.bfloat16()[moved][:1], before[moved][:1])


def test_predictions_are_in_the_order_of_the_samples_whatever_the_batch(tmp_path):
    directory = write_model(tmp_path / "model", "gpt2")
    model = build_classifier(directory, "pretrained", classes=3, padding=0, seed=1)
    texts = [GOOD * (i % 4 + 1) + str(i) for i in range(17)]
    samples = Samples(encode_texts(texts, directory, max_length=64), torch.zeros(17).long().numpy())

    first = predict(model, samples, batch_size=17, padding=0, device=CPU)
    second = predict(model, samples, batch_size=1, padding=0, device=CPU)

    assert first.tolist() == second.tolist()
