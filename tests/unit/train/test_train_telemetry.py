"""The log: cut back at a resume, readable while it grows, published beside the checkpoints."""

import json
from pathlib import Path

from pretrain_api.reports import StageProgress, TrainingStatus
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.process import ProgressReporter
from pretrain_jobs.storage import open_store
from pretrain_jobs.train.state import LogLine, Progress
from pretrain_jobs.train.telemetry import Telemetry


def telemetry(
    directory: Path, *lines: LogLine, step: int = 0, tensorboard: bool = False
) -> Telemetry:
    return Telemetry(
        directory / "logs",
        progress=Progress(step=step, cursor=Cursor("d", 1, 10), log=lines),
        store=open_store(StorageSpec(uri=f"file://{directory}/store")),
        reporter=ProgressReporter("train", path=directory / "progress.json"),
        tensorboard=tensorboard,
    )


def lines_in(path: Path) -> list[LogLine]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_after_a_resume_each_step_appears_once(tmp_path: Path) -> None:
    first = {"step": 10, "loss": 5.0}
    with telemetry(tmp_path) as before:
        for line in (first, {"step": 20, "loss": 4.0}, {"step": 30, "loss": 3.0}):
            before.line(line)

    with telemetry(tmp_path, first, step=10) as after:
        after.line({"step": 20, "loss": 4.0})

    assert [line["step"] for line in lines_in(tmp_path / "logs" / "log.jsonl")] == [10, 20]


def test_the_log_is_published_with_all_its_lines(tmp_path: Path) -> None:
    with telemetry(tmp_path) as log:
        log.line({"step": 10})
        log.publish()
        log.line({"step": 20})
        log.publish()

    published = lines_in(tmp_path / "store" / "logs" / "log.jsonl")
    assert [line["step"] for line in published] == [10, 20]


def test_tensorboard_gets_every_number(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    line = {"step": 10, "loss": 5.0, "mfu": None, "tokens": {"real": 30}, "resumed": True}
    with telemetry(tmp_path, tensorboard=True) as log:
        log.line(line)
        log.publish()

    events = EventAccumulator(str(tmp_path / "store" / "logs" / "tensorboard")).Reload()
    assert events.Tags()["scalars"] == ["loss", "tokens/real"]
    assert [(event.step, event.value) for event in events.Scalars("loss")] == [(10, 5.0)]


def test_progress_shows_steps_of_all_steps(tmp_path: Path) -> None:
    with telemetry(tmp_path) as log:
        log.show(TrainingStatus(step=3, max_steps=9, loss=2.0), checkpoint=None)

    progress = StageProgress.model_validate_json((tmp_path / "progress.json").read_bytes())
    assert (progress.done, progress.total, progress.unit) == (3, 9, "steps")
    assert progress.training is not None
    assert progress.training.loss == 2.0
