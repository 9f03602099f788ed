"""What a person may get wrong, through the real command: one clear sentence, a stable exit code.

Nothing is left half-written, and once the fault is mended the same command goes on. About 30 s.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pretrain_jobs.storage import open_store
from pretrain_testing.real_jobs import CORPUS, SMALLEST, RealJob
from pretrain_testing.s3 import S3Server

INVALID, FAILED = 2, 1
HAN = "".join(map(chr, range(0x4E00, 0x4E80)))
MOUNTS = ("unshare", "--mount", *(() if os.geteuid() == 0 else ("--map-root-user",)), "sh", "-c")
"""Runs a script in a mount namespace of its own, so that its mounts end with it."""


@dataclass(frozen=True)
class Bad:
    """Sections of a spec, the corpus's file, and words of the sentence that must come."""

    says: tuple[str, ...]
    spec: dict[str, Any] = field(default_factory=dict)
    corpus: bytes = CORPUS
    name: str = "a.txt"


def source(name: str, **corpus: Any) -> dict[str, Any]:
    return {"corpus": {"sources": [{"uri": f"corpus/{name}"}], **corpus}}


def training(**fields: Any) -> dict[str, Any]:
    return {"training": {**SMALLEST["training"], **fields}}


SPECS = {
    "unknown field": Bad(("spec.trainning: ", "did you mean training?"), {"trainning": {}}),
    "wrong type": Bad(
        ("spec.workers.replicas: expected an integer", 'found the text "two"'),
        {"workers": {"replicas": "two"}},
    ),
    "sequence longer than the model": Bad(
        ("spec.preprocess.sequenceLength: 1024 is more than the 512 positions", "shorten it, or"),
        {"preprocess": {"sequenceLength": 1024}},
    ),
    "fp16 on a CPU": Bad(
        ("spec.training.precision: fp16 is not trained on CPUs", "use fp32 or bf16"),
        training(precision="fp16"),
    ),
    "a batch that does not divide": Bad(
        ("spec.training.globalBatchSize: 10 is no multiple of 4", "the nearest are 8 and 12"),
        {**training(globalBatchSize=10), "workers": {"replicas": 4}},
    ),
}
"""Mistakes in the file itself."""

DATA = {
    "missing file": Bad(
        ("DataError: source ", "corpus/none.txt", "check the URI"), source("none.txt")
    ),
    "empty corpus": Bad(("DataError: corpus.sources gave no document: 1 files",), corpus=b""),
    "not UTF-8": Bad(
        ("DataError: corpus.sources ", "a.txt line 1: the document is not UTF-8"),
        corpus=CORPUS.decode().encode("gb18030"),
    ),
    "one document not UTF-8": Bad(
        (
            "DataError: 1 records were refused",
            "a.txt, line 121",
            "is not UTF-8",
            "raise corpus.maxReject",
        ),
        source("a.txt", maxRejects=0),
        corpus=CORPUS + b"\n\n\xc3\x28\n",
    ),
    "JSON line cut short": Bad(
        ("DataError: 1 records were refused", "a.jsonl, line 3", "not JSON: Unterminated string"),
        source("a.jsonl", maxRejects=0),
        corpus=b'{"text": "one and two"}\n{"text": "three or four"}\n{"text": "fi',
        name="a.jsonl",
    ),
}
"""Mistakes in the data, found by the stages before torch is imported."""


@pytest.fixture
def job(tmp_path: Path) -> RealJob:
    return RealJob(tmp_path)


def the_reason(result: subprocess.CompletedProcess[str], *, code: int) -> str:
    """The line that tells why it ended, which must be told once and without a traceback."""
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    start = "pretrainctl: " if code == INVALID else "job smallest failed: "
    (line,) = (line for line in result.stderr.splitlines() if line.startswith(start))
    reason = line.removeprefix(start)
    assert result.stderr.count(reason.partition(": ")[2] or reason) == 1
    return reason


def assert_nothing_is_half_written(job: RealJob) -> None:
    """No temporary file is left, and no output that a later stage would take for whole."""
    assert [path for path in job.workdir.rglob(".pretrain-tmp-*") if path.is_file()] == []
    assert list(job.storage.glob("datasets/*/manifest.json")) == []
    assert {path.name for path in job.storage.iterdir()} <= {"corpus", "tokenizers", "datasets"}


@pytest.mark.parametrize("bad", SPECS.values(), ids=SPECS)
def test_a_mistake_in_the_file_is_told_with_its_line_before_anything_is_made(
    job: RealJob, bad: Bad
) -> None:
    job.write(**bad.spec)
    validate = [sys.executable, "-m", "pretrainctl", "validate", str(job.file)]
    checked = subprocess.run(validate, capture_output=True, text=True, check=False)

    reason = the_reason(job.run(), code=INVALID)

    assert checked.returncode == INVALID
    assert checked.stderr == f"{reason}\n"
    assert all(words in reason for words in bad.says)
    place = re.match(rf"{job.file}:(\d+):\d+: spec\.(?:\w+\.)*(\w+): ", reason)
    assert place is not None
    assert place[2] in job.file.read_text().splitlines()[int(place[1]) - 1]
    assert not job.workdir.exists()


@pytest.mark.parametrize("bad", DATA.values(), ids=DATA)
def test_a_mistake_in_the_data_is_told_with_its_file_and_line(job: RealJob, bad: Bad) -> None:
    job.write(**bad.spec)
    job.write_corpus(bad.corpus, name=bad.name)

    reason = the_reason(job.run(), code=FAILED)

    assert all(words in reason for words in bad.says), reason
    assert_nothing_is_half_written(job)


def test_a_missing_file_is_not_found(job: RealJob) -> None:
    result = job.run()

    assert result.returncode == 3
    assert result.stderr == f"pretrainctl: {job.file} does not exist\n"
    assert not job.workdir.exists()


def test_a_disk_that_fills_ends_the_job_and_with_more_room_it_goes_on(job: RealJob) -> None:
    corpus = job.directory / "corpus.txt"
    seeded = random.Random(1)
    lines = ("".join(seeded.choices(HAN, k=200)) for _ in range(500))
    corpus.write_text("\n\n".join(lines), encoding="utf-8")
    job.write(corpus={"sources": [{"uri": corpus.as_uri()}]})
    job.storage.mkdir(parents=True)
    script = f"""
        mount -t tmpfs -o size=64k tmpfs {job.storage}
        "$@" || echo "exit code $?" >&2
        find {job.storage} -name '.pretrain-tmp-*' -type f >&2
        find {job.storage} -path '*/datasets/*/manifest.json' >&2
        mount -o remount,size=64m {job.storage}
        exec "$@"
    """

    result = job.run("--until", "preprocess", under=[*MOUNTS, script, "sh"])

    assert result.returncode == 0, result.stderr
    before, after = result.stderr.split("exit code 1\n")
    assert "preprocess: failed" in before
    assert before.count(f"no space while writing {job.storage}/datasets/") == 1
    assert "free space or raise the quota" in before
    assert "Traceback" not in before
    assert "job smallest failed before" in after.splitlines()[0]
    assert "preprocess: done" in after


def test_a_working_directory_that_is_read_only_is_refused(job: RealJob) -> None:
    job.write()
    job.workdir.mkdir()
    mounts = f"mount --bind {job.workdir} {job.workdir}; mount -o remount,bind,ro {job.workdir}"

    result = job.run(under=[*MOUNTS, f'{mounts}; exec "$@"', "sh"])

    assert the_reason(result, code=INVALID) == (
        f"{job.workdir} cannot be used as a working directory: Read-only file system; "
        "choose another one with --workdir"
    )
    assert list(job.workdir.iterdir()) == []


def test_wrong_credentials_are_told_and_never_shown(
    job: RealJob, rclone: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in rclone.environment.items():
        monkeypatch.setenv(name, value)
    storage = rclone.storage("tests", "refused")
    job.write(storage=storage.model_dump(mode="json", by_alias=True, exclude_none=True))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-wrong-secret")

    reason = the_reason(job.run(), code=FAILED)

    assert "StorageUnavailable" in reason
    assert "refused/corpus/a.txt': refused (403); check the credentials" in reason
    files = [path for path in job.workdir.rglob("*") if path.is_file()]
    assert not any(b"a-wrong-secret" in path.read_bytes() for path in files)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", rclone.secret_key)
    assert list(open_store(storage).list()) == []
