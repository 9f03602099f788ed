"""How a stage's process ends, as its pod and a person at a terminal see it (about 10 s)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pretrain_api.reports import STAGES, TERMINATION_LOG_ENV, StageReport

STAGE_OF_OUR_OWN = """
import sys
from pathlib import Path
from pretrain_api.reports import Artifact, CheckpointStatus, StageResult
from pretrain_jobs import errors
from pretrain_jobs.process import ProgressReporter, run_stage

def main(config):
{body}

sys.exit(run_stage("preprocess", main, Path(sys.argv[1])))
"""


@pytest.fixture
def report_path(tmp_path: Path) -> Path:
    return tmp_path / "termination-log"


@pytest.fixture
def environment(tmp_path: Path, report_path: Path) -> dict[str, str]:
    return {
        **os.environ,
        TERMINATION_LOG_ENV: str(report_path),
        "PRETRAIN_PROGRESS_FILE": str(tmp_path / "progress"),
        "JOB_COMPLETION_INDEX": "3",
    }


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.json"
    path.write_text('{"attempt": 2}')
    return path


def run(arguments: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def program(body: str) -> list[str]:
    indented = "\n".join(f"    {line}" for line in body.strip().splitlines())
    return ["-c", STAGE_OF_OUR_OWN.format(body=indented)]


def report(path: Path) -> StageReport:
    return StageReport.model_validate_json(path.read_bytes())


def test_help_tells_every_stage_variable_and_exit_code() -> None:
    ended = run(["-m", "pretrain_jobs", "--help"], {**os.environ, "COLUMNS": "100"})

    assert ended.returncode == 0
    for word in (*STAGES, "PRETRAIN_PROGRESS_FILE", "JOB_COMPLETION_INDEX", "64  UserError"):
        assert word in ended.stdout


@pytest.mark.parametrize("stage", STAGES)
def test_a_config_that_is_not_there_is_the_users_error_in_one_line(
    stage: str, environment: dict[str, str], report_path: Path, tmp_path: Path
) -> None:
    missing = tmp_path / "absent.json"

    ended = run(["-m", "pretrain_jobs", stage, "--config", str(missing)], environment)

    assert ended.returncode == 64
    assert ended.stdout == ""
    assert ended.stderr == (
        f"pretrain_jobs {stage}: UserError: config {missing} cannot be read: "
        "No such file or directory\n"
    )
    told = report(report_path)
    assert (told.stage, told.index, told.cause, told.retryable) == (stage, 3, "UserError", False)
    assert str(missing) in told.message


@pytest.mark.parametrize("text", ["", "{", "\x00", "not json"])
def test_a_config_that_is_not_json_says_where_it_breaks(
    text: str, config: Path, environment: dict[str, str]
) -> None:
    config.write_text(text)

    ended = run(["-m", "pretrain_jobs", "preprocess", "--config", str(config)], environment)

    assert ended.returncode == 64
    assert len(ended.stderr.splitlines()) == 1
    assert f"config {config} is not JSON: " in ended.stderr


def test_a_config_that_does_not_fit_names_the_fields(
    config: Path, environment: dict[str, str], report_path: Path
) -> None:
    config.write_text(json.dumps({"attempt": 1, "storage": {"uri": ""}, "seed": "x"}))

    ended = run(["-m", "pretrain_jobs", "preprocess", "--config", str(config)], environment)

    assert ended.returncode == 64
    assert len(ended.stderr.splitlines()) == 1
    for field in ("job: Field required", "storage.uri: ", "seed: Input should be"):
        assert field in ended.stderr
    assert report(report_path).attempt == 1


@pytest.mark.parametrize(
    "arguments", [[], ["no-such-stage"], ["train"], ["train", "--config"]], ids=" ".join
)
def test_a_wrong_command_line_has_the_exit_code_of_the_users_error(arguments: list[str]) -> None:
    ended = run(["-m", "pretrain_jobs", *arguments], dict(os.environ))

    assert ended.returncode == 64
    assert ended.stderr.startswith("usage: python -m pretrain_jobs")
    assert "Traceback" not in ended.stderr


def test_a_stage_that_succeeds_reports_its_result_and_says_nothing(
    config: Path, environment: dict[str, str], report_path: Path, tmp_path: Path
) -> None:
    body = """
ProgressReporter("preprocess").update(done=1, total=2, unit="documents")
return StageResult(slices=4, counts={"documents": 10})
"""

    ended = run([*program(body), str(config)], environment)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    told = report(report_path)
    assert (told.cause, told.attempt, told.index) == (None, 2, 3)
    assert told.result is not None
    assert (told.result.slices, told.result.counts) == (4, {"documents": 10})
    assert json.loads((tmp_path / "progress").read_text())["total"] == 2


@pytest.mark.parametrize(
    ("body", "code", "line"),
    [
        ("raise errors.DataError('no document\\nin x')", 65, "DataError: no document in x"),
        ("raise errors.StorageUnavailableError('down')", 69, "StorageUnavailable: down"),
        ("raise errors.NonFiniteError('loss')", 70, "NonFinite: loss"),
        ("raise KeyboardInterrupt", 75, "Preempted: interrupted"),
    ],
)
def test_a_foreseen_ending_is_one_line_with_its_exit_code(
    body: str, code: int, line: str, config: Path, environment: dict[str, str]
) -> None:
    ended = run([*program(body), str(config)], environment)

    assert ended.returncode == code
    assert ended.stderr == f"pretrain_jobs preprocess: {line}\n"
    assert report(Path(environment[TERMINATION_LOG_ENV])).cause == line.split(":", maxsplit=1)[0]


@pytest.mark.parametrize(
    ("body", "code", "cause"),
    [
        ("[][1]", 1, "Unknown: IndexError: list index out of range"),
        ("sys.exit(3)", 1, "Unknown: SystemExit: 3"),
        ("bytes(1 << 60)", 77, "OutOfMemory: out of memory"),
        (
            "with open('/dev/full', 'wb', buffering=0) as full: full.write(b'1')",
            69,
            "StorageUnavailable: no space while writing a local file: No space left on device; ",
        ),
    ],
)
def test_an_unforeseen_ending_leaves_its_traceback_in_the_log(
    body: str, code: int, cause: str, config: Path, environment: dict[str, str]
) -> None:
    ended = run([*program(body), str(config)], environment)

    assert ended.returncode == code
    assert "Traceback" in ended.stderr
    assert ended.stderr.splitlines()[-1].startswith(f"pretrain_jobs preprocess: {cause}")


def test_sigterm_ends_a_stage_as_preempted_after_it_has_cleaned_up(
    config: Path, environment: dict[str, str], report_path: Path, tmp_path: Path
) -> None:
    body = f"""
from pretrain_jobs.storage.local_files import atomic_file
import signal
with atomic_file(Path({str(tmp_path / "half")!r})) as stream:
    stream.write(b"half")
    print("writing", flush=True)
    signal.pause()
"""
    before = sorted(path.name for path in tmp_path.iterdir())
    command = [sys.executable, *program(body), str(config)]

    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as stage:
        assert stage.stdout is not None
        assert stage.stdout.readline() == "writing\n"
        stage.send_signal(signal.SIGTERM)
        _, errors = stage.communicate()

    assert stage.returncode == 75
    assert errors == "pretrain_jobs preprocess: Preempted: stopped by SIGTERM\n"
    assert report(report_path).retryable
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*before, report_path.name])


def test_forked_children_that_get_sigterm_just_end_however_early_it_comes(
    config: Path, environment: dict[str, str]
) -> None:
    body = """
import multiprocessing, time
children = [
    multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,)) for _ in range(20)
]
for child in children:
    child.start()
    child.terminate()
for child in children:
    child.join()
assert {child.exitcode for child in children} == {-15}, children
return StageResult()
"""

    ended = run([*program(body), str(config)], environment)

    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_report_that_cannot_be_written_does_not_change_the_ending(
    config: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    environment[TERMINATION_LOG_ENV] = str(tmp_path / "absent" / "log")

    ended = run([*program("return StageResult()"), str(config)], environment)

    assert ended.returncode == 0
    assert "report cannot be written" in ended.stderr
