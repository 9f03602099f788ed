"""Sample data goes to an S3 server and artifacts come back from one: about ten seconds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pretrain_jobs.storage import artifact, open_store
from pretrain_testing.s3 import S3Server

BUCKET = "tests"


@pytest.fixture
def server(rclone: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A server, and in the environment all that a command needs to find it."""
    for name, value in rclone.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", rclone.endpoint_url)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    return rclone


def run(module: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_sample_data_is_uploaded_once(server: S3Server) -> None:
    target = f"s3://{BUCKET}/samples"

    first = run("pretrainctl", "samples", "data", "quickstart", "--to", target)
    assert first.returncode == 0, first.stderr
    keys = {item.key for item in open_store(server.storage(BUCKET, "samples")).list()}
    assert keys == {
        "corpus/reviews.jsonl",
        "corpus/sentiment-test.jsonl",
        "corpus/sentiment-train.jsonl",
    }

    again = run("pretrainctl", "samples", "data", "quickstart", "--to", target)
    assert again.stderr.count("there already") == 3


def test_wrong_credentials_are_one_sentence(
    server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    result = run("pretrainctl", "samples", "data", "quickstart", "--to", f"s3://{BUCKET}/demo")
    assert result.returncode == 2
    assert result.stderr.startswith(f"pretrainctl: s3://{BUCKET}/demo cannot be written: ")
    assert "Traceback" not in result.stderr


def test_an_export_is_copied_from_s3_with_the_endpoint_of_the_job(
    server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = server.storage(BUCKET, "demo")
    store = open_store(storage, "exports/f")
    entry = store.write("config.json", b"{}")
    files = [artifact.FileEntry(entry.key, entry.size, sha256=EMPTY_OBJECT_SHA256)]
    artifact.commit(store, kind="export", fingerprint="f", files=files, extra={})
    monkeypatch.delenv("AWS_ENDPOINT_URL")

    result = run(
        "pretrain_jobs", "pull", store.uri, tmp_path / "out", "--storage", storage.model_dump_json()
    )

    assert result.returncode == 0, result.stderr
    assert (tmp_path / "out" / "config.json").read_bytes() == b"{}"


EMPTY_OBJECT_SHA256 = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
"""Of the two bytes `{}`."""
