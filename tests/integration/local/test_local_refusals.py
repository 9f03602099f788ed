"""What the command refuses of its arguments, its directory and its job: about ten seconds."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pytest
from pretrain_testing.local import LocalJob


@pytest.fixture
def job(tmp_path: Path) -> LocalJob:
    job = LocalJob(tmp_path)
    job.write()
    return job


def pretrainctl(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pretrainctl", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def assert_refused(result: subprocess.CompletedProcess[str], *, code: int, saying: str) -> None:
    assert result.returncode == code
    assert saying in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_an_invalid_job_is_refused_with_every_problem_before_anything_is_made(
    job: LocalJob,
) -> None:
    job.write(workers={"replicas": "two"}, nonsense=1)
    result = job.run()
    assert_refused(result, code=2, saying="job.yaml:")
    assert "spec.workers.replicas" in result.stderr
    assert "spec.nonsense" in result.stderr
    assert not job.workdir.exists()


def test_an_unknown_stage_is_a_usage_error(job: LocalJob) -> None:
    assert_refused(job.run("--until", "tea"), code=2, saying="tokenizer")


def test_a_working_directory_that_cannot_be_made_is_refused(job: LocalJob) -> None:
    job.workdir.write_text("a file")
    assert_refused(job.run(), code=2, saying="cannot be used as a working directory")


def test_a_damaged_job_file_is_refused_with_what_to_do(job: LocalJob) -> None:
    assert job.run("--until", "tokenizer").returncode == 0
    file = job.workdir / "pretrainjob.yaml"
    file.write_text(file.read_text()[:400] + "\n: :\n")
    assert_refused(job.run(), code=2, saying="pretrainjob.yaml is damaged")


def test_a_suspended_job_says_that_nothing_would_run(job: LocalJob) -> None:
    job.write(suspend=True)
    assert_refused(job.run(), code=2, saying="spec.suspend is true")


def test_a_job_file_that_cannot_be_written_ends_the_run_and_keeps_the_old_one(
    job: LocalJob,
) -> None:
    assert job.run("--until", "tokenizer").returncode == 0
    before = job.saved
    process = job.start()
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (64, 64))
    output, errors = process.communicate()
    result = subprocess.CompletedProcess([], process.returncode, output, errors)
    assert_refused(result, code=1, saying="pretrainjob.yaml cannot be written: File too large")
    assert job.saved == before


def test_a_volume_that_only_a_cluster_has_is_named(job: LocalJob) -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "corpus"}}
    mount = {"name": "data", "mountPath": "/data"}
    template = {
        "spec": {"containers": [{"name": "main", "volumeMounts": [mount]}], "volumes": [volume]}
    }
    job.write(preprocess={"podTemplate": template})
    assert_refused(job.run(), code=2, saying="'data' is a persistentVolumeClaim")


@pytest.mark.parametrize("command", ["render", "validate"])
def test_offline_commands_say_the_same(command: str, tmp_path: Path) -> None:
    assert_refused(pretrainctl(command, tmp_path / "no"), code=3, saying="does not exist")


def test_an_unknown_sample_names_those_that_there_are() -> None:
    assert_refused(pretrainctl("samples", "show", "tea"), code=3, saying="quickstart")
