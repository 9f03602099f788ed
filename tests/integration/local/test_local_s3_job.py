"""A whole job whose storage is an S3 server, with the real stages: about a minute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_testing.real_jobs import CORPUS, SMALLEST, RealJob
from pretrain_testing.s3 import S3Server

BUCKET = "tests"
URI = f"s3://{BUCKET}/job"
TASK = {
    "name": "number",
    "data": {"uri": "tasks/number.jsonl"},
    "seeds": [1],
    "fineTuning": {"epochs": 1, "batchSize": 8, "maxLength": 32},
}
ROWS = [{"text": f"今天是{number}号。", "label": number % 2} for number in range(20)]


@pytest.fixture
def store(weed: S3Server, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """The job's inputs in a bucket; where the server is and who we are is in the environment."""
    for name, value in weed.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", weed.endpoint_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    store = open_store(weed.storage(BUCKET, "job"))
    store.write("corpus/a.txt", CORPUS)
    store.write("tasks/number.jsonl", "\n".join(map(json.dumps, ROWS)).encode())
    return store


def run(directory: Path) -> tuple[RealJob, dict[str, Any]]:
    """Run the job on that storage; the finished object."""
    directory.mkdir(exist_ok=True)
    job = RealJob(directory)
    job.write(
        corpus={**SMALLEST["corpus"], "validation": {"fraction": 0.2}}, evaluation={"tasks": [TASK]}
    )
    result = job.run("--storage", URI, "-o", "json")
    assert result.returncode == 0, result.stderr
    finished: dict[str, Any] = json.loads(result.stdout)
    return job, finished


def test_a_job_runs_on_s3_with_credentials_of_the_environment_and_a_second_uses_its_outputs(
    store: ObjectStore, weed: S3Server, tmp_path: Path
) -> None:
    job, finished = run(tmp_path / "first")

    status = finished["status"]
    assert status["phase"] == "Complete"
    assert finished["spec"]["storage"] == {"uri": URI}
    assert {stage["state"] for stage in status["stages"]} == {"Complete"}
    assert all(stage["uri"].startswith(f"{URI}/") for stage in status["stages"])
    assert status["checkpoint"]["step"] == SMALLEST["training"]["maxSteps"]
    assert of_the_task(finished).keys() == {
        f"number/{weights}/{metric}/{name}"
        for weights in ("pretrained", "random")
        for metric in ("accuracy", "f1", "mcc")
        for name in ("mean", "stdev")
    }
    assert not job.storage.exists()
    exported = open_store(weed.storage(BUCKET), status["exportUri"]).read("model.safetensors")
    assert (job.workdir / "export" / "model.safetensors").read_bytes() == exported
    assert_nobody_wrote_the_secret_down(job, store, weed)

    _, again = run(tmp_path / "second")

    assert {stage["name"]: stage["cached"] for stage in again["status"]["stages"]} == dict.fromkeys(
        ("tokenizer", "preprocess", "train", "evaluate", "export"), True
    )
    assert again["metadata"]["uid"] != finished["metadata"]["uid"]
    assert of_the_task(again) == of_the_task(finished)
    assert again["status"]["exportUri"] == status["exportUri"]


def of_the_task(job: dict[str, Any]) -> dict[str, float]:
    metrics: dict[str, float] = job["status"]["metrics"]
    return {name: value for name, value in metrics.items() if name.startswith("number/")}


def assert_nobody_wrote_the_secret_down(job: RealJob, store: ObjectStore, weed: S3Server) -> None:
    secret = weed.secret_key.encode()
    files = [path for path in job.directory.rglob("*") if path.is_file()]
    assert not any(secret in path.read_bytes() for path in files)
    assert not any(secret in store.read(info.key) for info in store.list())
