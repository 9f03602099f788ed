"""Whatever is killed, nothing is left running and the same command goes on: about a minute."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pretrain_testing.local import LocalJob
from pretrain_testing.processes import processes_of, wait_for

STOP_SECONDS = 5.0
"""What the command promises."""


@pytest.fixture
def job(tmp_path: Path) -> LocalJob:
    return LocalJob(tmp_path)


def assert_goes_on(job: LocalJob) -> None:
    uid = job.saved["metadata"]["uid"]
    result = job.run()
    assert result.returncode == 0, result.stderr
    assert job.saved["metadata"]["uid"] == uid
    assert job.saved["status"]["phase"] == "Complete"
    assert job.saved["status"]["restarts"] == {}
    assert {run["attempt"] for run in job.runs if run["stage"] == "train"} == {0, 1}


@pytest.mark.parametrize(
    ("number", "action"),
    [
        (signal.SIGINT, "wait"),
        (signal.SIGINT, "stubborn"),
        (signal.SIGTERM, "wait"),
        (signal.SIGHUP, "wait"),
    ],
)
def test_a_signal_stops_every_process_in_time_and_the_same_command_goes_on(
    job: LocalJob, number: signal.Signals, action: str
) -> None:
    job.write(workers={"replicas": 2}, scripts={"train": [action]})
    process = job.start_until(action)
    begun = time.monotonic()

    process.send_signal(number)

    errors = process.communicate()[1]
    assert time.monotonic() - begun < STOP_SECONDS
    assert process.returncode == 130, errors
    assert "the same command goes on" in errors
    assert not processes_of(job.directory)
    assert_goes_on(job)


def test_a_second_signal_does_not_wait_for_anybody(job: LocalJob) -> None:
    job.write(scripts={"train": ["stubborn"]})
    process = job.start_until("stubborn")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 130
    assert not processes_of(job.directory)


def test_killing_the_command_ends_every_process_and_the_same_command_goes_on(
    job: LocalJob,
) -> None:
    job.write(workers={"replicas": 2}, scripts={"train": ["stubborn"]})
    process = job.start_until("stubborn")

    process.kill()

    process.communicate()
    wait_for("the end of all processes", lambda: not processes_of(job.directory))
    assert_goes_on(job)


def test_processes_that_outlive_a_killed_command_are_ended_by_the_next(job: LocalJob) -> None:
    job.write(scripts={"train": ["stubborn"]})
    process = job.start_until("stubborn")
    (warden,) = wardens(process)
    warden.suspend()
    process.kill()
    warden.kill()
    process.communicate()
    assert processes_of(job.directory)

    assert_goes_on(job)

    assert not processes_of(job.directory)


def test_a_killed_warden_is_replaced(job: LocalJob) -> None:
    job.write(scripts={"train": ["wait"]})
    process = job.start_until("wait")
    (warden,) = wardens(process)
    warden.kill()
    (another,) = wait_for(
        "another warden", lambda: [item for item in wardens(process) if item.pid != warden.pid]
    )
    assert another.is_running()
    process.kill()
    process.communicate()
    wait_for("the end of all processes", lambda: not processes_of(job.directory))


def test_a_killed_stage_takes_its_own_processes_with_it(job: LocalJob) -> None:
    job.write(scripts={"train": ["stubborn", "wait"]})
    process = job.start_until("stubborn")
    before = set(processes_of(job.workdir / ".pretrainctl" / "pods"))
    (victim,) = [run["pid"] for run in job.runs if run["action"] == "stubborn"]

    os.kill(victim, signal.SIGKILL)

    wait_for("the next attempt", lambda: job.stages_run.count("train") == 2)
    assert before.isdisjoint(processes_of(job.workdir / ".pretrainctl" / "pods"))
    process.send_signal(signal.SIGINT)
    process.communicate()


def test_one_directory_is_for_one_command_at_a_time(job: LocalJob) -> None:
    job.write(scripts={"train": ["wait"]})
    process = job.start_until("wait")

    other = job.run()

    assert other.returncode == 2
    assert f"in use by another pretrainctl (process {process.pid})" in other.stderr
    process.send_signal(signal.SIGINT)
    process.communicate()


def wardens(process: subprocess.Popen[str]) -> list[psutil.Process]:
    return [child for child in psutil.Process(process.pid).children() if is_warden(child)]


def is_warden(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return "pretrainctl.local.warden" in process.cmdline()
    return False


def test_an_attempt_is_known_before_any_of_its_processes_runs(job: LocalJob) -> None:
    job.write(scripts={"train": ["wait"]})
    process = job.start()
    wait_for("training", lambda: "train" in job.stages_run)
    process.kill()
    process.communicate()
    train = next(stage for stage in job.saved["status"]["stages"] if stage["name"] == "train")
    assert (train["state"], train["attempt"]) == ("Running", 0)
