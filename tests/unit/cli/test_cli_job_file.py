"""The job's file in a working directory is read back as it was written, or refused."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pretrain_api.job import PretrainJob
from pretrain_api.status import Phase, PretrainJobStatus
from pretrainctl.errors import InvalidError, JobFailedError
from pretrainctl.local.continuation import continue_or_start
from pretrainctl.local.job_file import JobFile, job_as_data
from pretrainctl.local.workdir import WorkDir, open_workdir

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def file(tmp_path: Path) -> JobFile:
    return JobFile(WorkDir(tmp_path))


@pytest.fixture
def job() -> PretrainJob:
    wanted = PretrainJob.model_validate(
        {
            "apiVersion": "pretrain.dev/v1alpha1",
            "kind": "PretrainJob",
            "metadata": {"name": "demo", "labels": {"version": "1e3", "on": "off"}},
            "spec": {
                "corpus": {"sources": [{"uri": "语料/a.txt"}]},
                "model": {"architecture": "bert"},
                "training": {"optimizer": {"learningRate": 1e-5}},
            },
        }
    )
    begun = continue_or_start(wanted, None, now=NOW, new_uid="u").job
    status = PretrainJobStatus(phase=Phase.TRAINING, metrics={"a/b": 1e-7})
    return begun.model_copy(update={"status": status})


def test_a_job_is_read_back_as_it_was_written(file: JobFile, job: PretrainJob) -> None:
    file.save(job)
    assert file.load() == job


def test_the_spec_stays_as_it_was_written(job: PretrainJob) -> None:
    spec = job_as_data(job)["spec"]
    assert spec.keys() == {"corpus", "model", "training"}


def test_without_a_file_there_is_no_job(file: JobFile) -> None:
    assert file.load() is None


@pytest.mark.parametrize(
    "damage", ["", "a: [", "[1]", "kind: PretrainJob", "\xff", "spec: {corpus: 3}"]
)
def test_a_damaged_file_is_refused_with_what_to_do(
    file: JobFile, job: PretrainJob, damage: str
) -> None:
    file.save(job)
    file.workdir.job_file.write_bytes(damage.encode("latin-1"))
    with pytest.raises(InvalidError, match=r"is damaged .* delete it to start a new job"):
        file.load()


def test_a_file_that_cannot_be_written_is_a_failure_that_says_so(
    tmp_path: Path, job: PretrainJob
) -> None:
    with pytest.raises(JobFailedError, match="cannot be written"):
        JobFile(WorkDir(tmp_path / "missing")).save(job)


def test_a_working_directory_may_hold_other_things_and_they_stay(tmp_path: Path) -> None:
    for name in ("tmp", "pods", "storage"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").touch()
    with open_workdir(tmp_path) as workdir:
        assert workdir.logs.is_dir()
    assert {path.parent.name for path in tmp_path.glob("*/mine")} == {"tmp", "pods", "storage"}


def test_a_working_directory_is_for_one_command_at_a_time(tmp_path: Path) -> None:
    with (
        open_workdir(tmp_path),
        pytest.raises(InvalidError, match="in use by another pretrainctl"),
        open_workdir(tmp_path),
    ):
        pass
    with open_workdir(tmp_path) as workdir:
        assert workdir.root == tmp_path
