"""`pretrainctl local` carries the plan out with processes: about a minute in all.

The stages are scripted (see pretrain_testing.scripted_stages); all else is the real command.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from pretrain_testing.local import LocalJob
from pretrain_testing.processes import processes_of, wait_for


@pytest.fixture
def job(tmp_path: Path) -> LocalJob:
    return LocalJob(tmp_path)


def stage(job: LocalJob, name: str) -> dict[str, Any]:
    stages: list[dict[str, Any]] = job.saved["status"]["stages"]
    return next(item for item in stages if item["name"] == name)


def condition(job: LocalJob, name: str) -> dict[str, Any]:
    conditions: list[dict[str, Any]] = job.saved["status"]["conditions"]
    return next(item for item in conditions if item["type"] == name)


def test_a_job_runs_through_its_stages_and_running_it_again_does_nothing(job: LocalJob) -> None:
    job.write(slices=2)

    first = job.run()

    assert first.returncode == 0, first.stderr
    assert job.stages_run == ["tokenizer", "preprocess", "preprocess", "train", "export"]
    assert job.saved["status"]["phase"] == "Complete"
    assert (job.workdir / "export" / "config.json").is_file()
    assert not any(path.exists() for path in (job.workdir / ".pretrainctl" / "tmp").iterdir())
    shutil.rmtree(job.workdir / "export")

    again = job.run()

    assert again.returncode == 0
    assert "complete already: nothing to do" in again.stderr
    assert len(job.runs) == 5
    assert (job.workdir / "export" / "config.json").is_file()


def test_the_finished_object_is_all_that_standard_output_holds_on_request(job: LocalJob) -> None:
    job.write()
    result = job.run("-o", "json")
    data = json.loads(result.stdout)
    assert data["status"]["phase"] == "Complete"
    assert data["metadata"]["uid"] == job.saved["metadata"]["uid"]


def test_without_a_terminal_each_stage_tells_its_start_and_end_in_a_line(job: LocalJob) -> None:
    job.write()
    result = job.run()
    lines = [line.split(" ", 1)[1] for line in result.stderr.splitlines()]
    for name in ("tokenizer", "preprocess", "train", "export"):
        assert f"{name}: running" in lines
        assert any(line.startswith(f"{name}: done in ") for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_slices_run_side_by_side_up_to_the_parallelism_each_with_its_index(job: LocalJob) -> None:
    job.write(
        slices=3,
        scripts={"preprocess": ["wait"]},
        preprocess={"parallelism": 2},
    )
    process = job.start()
    wait_for("two slices", lambda: job.stages_run.count("preprocess") == 2)
    slices = [run for run in job.runs if run["stage"] == "preprocess"]
    assert {run["env"]["JOB_COMPLETION_INDEX"] for run in slices} == {"0", "1"}

    process.send_signal(signal.SIGINT)
    process.communicate()
    assert job.run().returncode == 0
    assert stage(job, "preprocess")["succeeded"] == 3


def test_a_pods_environment_is_its_own_and_not_the_callers(
    job: LocalJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    job.write(workers={"replicas": 2})
    job.run()
    (rank0, rank1) = sorted(
        (run for run in job.runs if run["stage"] == "train"), key=lambda run: run["index"]
    )
    assert rank0["env"]["OMP_NUM_THREADS"] == "1"
    assert rank0["env"]["AWS_ACCESS_KEY_ID"] == "key"
    assert rank0["env"]["TMPDIR"] == rank0["env"]["HOME"] != rank1["env"]["HOME"]
    aliases = json.loads(rank1["env"]["PRETRAIN_HOST_ALIASES"])
    assert aliases[rank1["config"]["rendezvous"]["host"]] == "127.0.0.1"


def test_a_lost_attempt_is_followed_by_another_under_the_next_number(job: LocalJob) -> None:
    job.write(scripts={"train": ["exit 71", "signal 9", "ok"]})
    result = job.run()
    assert result.returncode == 0, result.stderr
    assert [run["attempt"] for run in job.runs if run["stage"] == "train"] == [0, 1, 2]
    assert job.saved["status"]["restarts"] == {"Infrastructure": 2}


def test_a_lost_worker_ends_the_whole_gang(job: LocalJob) -> None:
    job.write(workers={"replicas": 2}, scripts={"train": ["wait"]})
    process = job.start()
    gang = wait_for("the gang", lambda: [r for r in job.runs if r["stage"] == "train"][1:2])

    os.kill(gang[0]["pid"], signal.SIGKILL)

    errors = process.communicate()[1]
    assert process.returncode == 0, errors
    attempts = [(run["index"], run["attempt"]) for run in job.runs if run["stage"] == "train"]
    assert sorted(attempts) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    assert not processes_of(job.directory)


def test_a_failed_slice_is_tried_again_inside_its_job(job: LocalJob) -> None:
    job.write(slices=2, scripts={"preprocess": ["exit 1", "ok"]})
    result = job.run()
    assert result.returncode == 0, result.stderr
    assert stage(job, "preprocess")["attempt"] == 0
    assert job.stages_run.count("preprocess") == 4


def test_what_no_retry_can_mend_fails_the_job_and_the_same_command_goes_on_once_mended(
    job: LocalJob,
) -> None:
    job.write(scripts={"train": ["exit 64", "ok"]})

    failed = job.run()

    assert failed.returncode == 1
    assert failed.stderr.count("as the test wanted") == 1
    assert "Traceback" not in failed.stderr
    (log,) = job.workdir.glob("logs/*-train-0-*.log")
    assert str(log) in failed.stderr
    uid = job.saved["metadata"]["uid"]
    assert job.saved["status"]["phase"] == "Failed"

    mended = job.run()

    assert mended.returncode == 0, mended.stderr
    assert "failed before" in mended.stderr
    assert job.saved["metadata"]["uid"] == uid
    assert job.saved["status"]["restarts"] == {}
    assert [run["attempt"] for run in job.runs if run["stage"] == "train"] == [0, 1]
    assert (
        len({run["config"].get("checkpointUri") for run in job.runs if run["stage"] == "train"})
        == 1
    )


def test_a_run_may_stop_after_a_stage_and_go_on_later(job: LocalJob) -> None:
    job.write()
    assert job.run("--until", "preprocess").returncode == 0
    assert job.stages_run == ["tokenizer", "preprocess"]
    assert job.saved["status"]["phase"] == "Suspended"
    why = "Stopped after preprocess; without --until it goes on."
    assert job.saved["status"]["blockedBy"] == why
    assert {"reason": "Stopped", "message": why}.items() <= condition(job, "Suspended").items()
    assert job.run("--until", "preprocess").returncode == 0
    assert len(job.runs) == 2
    assert job.run("--until", "export").returncode == 0
    assert job.stages_run == ["tokenizer", "preprocess", "train", "export"]
    assert job.saved["status"]["phase"] == "Complete"
    assert job.saved["status"]["blockedBy"] == ""


def test_a_changed_file_is_a_new_job_in_the_same_storage(job: LocalJob) -> None:
    job.write()
    job.run()
    first = job.saved
    job.write(training={"maxSteps": 7})

    result = job.run()

    assert "another job or spec than before" in result.stderr
    assert job.saved["metadata"]["uid"] != first["metadata"]["uid"]
    assert {run["config"]["storage"]["uri"] for run in job.runs} == {
        (job.workdir / "storage").as_uri()
    }


def test_another_storage_may_be_given_as_a_directory(job: LocalJob) -> None:
    job.write()
    elsewhere = job.directory / "elsewhere"
    assert job.run("--storage", str(elsewhere)).returncode == 0
    assert job.saved["spec"]["storage"]["uri"] == elsewhere.as_uri()
    assert {run["config"]["storage"]["uri"] for run in job.runs} == {elsewhere.as_uri()}
