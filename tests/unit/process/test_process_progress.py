"""Progress: throttled, merged, and never a stage's problem."""

from __future__ import annotations

from pathlib import Path

import pytest
from pretrain_api.reports import PROGRESS_FILE_ENV, StageProgress, TrainingStatus
from pretrain_jobs.progress import ProgressReporter


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "progress.json"


@pytest.fixture
def reporter(path: Path, clock: Clock) -> ProgressReporter:
    return ProgressReporter("preprocess", index=2, attempt=1, path=path, clock=clock)


def written(path: Path) -> StageProgress:
    return StageProgress.model_validate_json(path.read_bytes())


def test_the_first_update_is_written_at_once(reporter: ProgressReporter, path: Path) -> None:
    reporter.update(done=1, total=4, unit="documents")

    assert written(path) == StageProgress(
        stage="preprocess", index=2, attempt=1, done=1, total=4, unit="documents"
    )
    assert [item.name for item in path.parent.iterdir()] == [path.name]


def test_updates_within_half_a_second_wait_for_the_next_one(
    reporter: ProgressReporter, path: Path, clock: Clock
) -> None:
    reporter.update(done=1)
    clock.now += 0.4
    reporter.update(done=2)
    assert written(path).done == 1

    clock.now += 0.1
    reporter.update(message="still running")

    assert (written(path).done, written(path).message) == (2, "still running")


def test_a_forced_update_and_a_flush_do_not_wait(reporter: ProgressReporter, path: Path) -> None:
    reporter.update(done=1)
    reporter.update(done=2, force=True)
    assert written(path).done == 2

    reporter.update(done=3)
    reporter.flush()

    assert written(path).done == 3


def test_what_an_update_does_not_give_stays(reporter: ProgressReporter, path: Path) -> None:
    reporter.update(done=1, training=TrainingStatus(step=5), force=True)
    reporter.update(done=2, force=True)

    assert written(path).training == TrainingStatus(step=5)


def test_a_missing_directory_is_no_error(tmp_path: Path, clock: Clock) -> None:
    reporter = ProgressReporter("train", path=tmp_path / "absent" / "progress", clock=clock)

    reporter.update(done=1, force=True)

    assert list(tmp_path.iterdir()) == []


def test_the_path_comes_from_the_environment(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(PROGRESS_FILE_ENV, raising=False)
    ProgressReporter("train", clock=clock).update(done=1)
    assert not path.exists()

    monkeypatch.setenv(PROGRESS_FILE_ENV, str(path))
    ProgressReporter("train", clock=clock).update(done=1)
    assert written(path).stage == "train"
