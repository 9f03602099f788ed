"""What one version's processes leave for another's: with fields too many, or too few."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pretrain_api.base import Message
from pretrain_api.reports import (
    STAGES,
    Artifact,
    Cause,
    CheckpointStatus,
    StageProgress,
    StageReport,
    StageResult,
    TrainingStatus,
)
from pretrain_api.timesheet import TimeSheet
from pretrain_operator.observe import PodFacts
from pretrain_operator.progress import read_answer
from pretrain_testing.future_fields import of_the_future
from pretrain_testing.raw_children import raw_pod, terminated

MODULES = (
    "pretrain_api.reports",
    "pretrain_api.stages",
    "pretrain_api.status",
    "pretrain_api.timesheet",
    "pretrain_jobs.checkpoint.manifest",
    "pretrain_jobs.corpus.slice_manifest",
    "pretrain_jobs.corpus.slices",
    "pretrain_jobs.dataset.manifest",
    "pretrain_jobs.evaluate.results",
    "pretrain_jobs.format_version",
)
WRITTEN_FROM_THE_START: dict[str, str] = {
    "Abandonment": "abandoned_by time",
    "Artifact": "stage fingerprint uri",
    "CheckpointStatus": "step uri sha256 time",
    "Commit": "step generation attempt lineage world_size zero_stage versions time ranks root_hash",
    "Condition": "type status reason last_transition_time",
    "DatasetManifest": "fingerprint tokenizer_sha256 dtype vocab_size splits statistics",
    "EarlierAttempts": "time",
    "EvaluateStageConfig": "job storage model_uri model_fingerprint evaluation_uri "
    "evaluation_fingerprint evaluation workers",
    "ExportStageConfig": "job storage model_uri model_fingerprint dataset_uri "
    "dataset_fingerprint export_uri export_fingerprint export spec",
    "Figure": "mean stdev",
    "FirstManifest": "rank step generation attempt files origin",
    "JobRef": "namespace name uid",
    "Origin": "lineage world_size zero_stage versions",
    "PreprocessStageConfig": "job storage corpus preprocess objective tokenizer_uri dataset_uri "
    "dataset_fingerprint seed",
    "RankManifest": "rank step generation attempt files",
    "RejectsFile": "path size sha256",
    "RendezvousConfig": "host port run_id timeout_seconds",
    "Results": "tasks",
    "RunResult": "task initialisation seed train_samples test_samples steps metrics",
    "ShardEntry": "path documents sentences words tokens bytes sha256",
    "Slice": "index split source parts size",
    "SliceManifest": "fingerprint index shards rejects statistics",
    "SlicePart": "file start end",
    "SlicePlan": "files slices",
    "SourceFile": "uri size etag format compression",
    "StageConfig": "job storage",
    "StageProgress": "stage",
    "StageReport": "stage",
    "StageStatus": "name",
    "StoredFile": "name size sha256",
    "SuspectNode": "name",
    "TaskResult": "name labels runs figures difference",
    "TimeSheet": "began at seconds",
    "TokenizerStageConfig": "job storage spec",
    "TrainStageConfig": "job storage dataset_uri dataset_fingerprint model_uri "
    "model_fingerprint checkpoint_uri model objective preprocess training workers checkpoint "
    "rendezvous",
}
"""Fields that a message cannot be without, as every version writes them; of others, none."""

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CHECKPOINT = CheckpointStatus(step=4, uri="s3://c/4", sha256="0" * 64, time=NOW)
SHEET = TimeSheet(began=NOW, at=NOW, seconds={"step": 2.0})
REPORT = StageReport(
    stage="train",
    cause=Cause.HANG,
    message="rank 1 hangs",
    result=StageResult(
        artifacts=[Artifact(stage="train", fingerprint="f", uri="s3://m/f")],
        counts={"samples": 3},
        checkpoint=CHECKPOINT,
        time_sheet=SHEET,
    ),
)
PROGRESS = StageProgress(
    stage="train", done=4, training=TrainingStatus(step=4), checkpoint=CHECKPOINT, time_sheet=SHEET
)


def messages(kind: type[Message] = Message) -> Iterator[type[Message]]:
    for each in kind.__subclasses__():
        yield each
        yield from messages(each)


def report_of(message: str) -> StageReport | None:
    facts = PodFacts.of(raw_pod(phase="Failed", state=terminated(76, message=message)))
    assert facts is not None
    return facts.pod.report


def test_a_field_that_was_added_later_has_a_default_for_those_who_do_not_write_it() -> None:
    for module in MODULES:
        importlib.import_module(module)

    for message in messages():
        needed = {name for name, field in message.model_fields.items() if field.is_required()}
        first = set(WRITTEN_FROM_THE_START.get(message.__name__, "").split())
        assert needed == first, f"{message.__name__}: an older version writes no {needed - first}"


def test_the_report_of_a_newer_image_is_read_without_what_is_not_known() -> None:
    assert report_of(of_the_future(REPORT).decode()) == REPORT


def test_the_report_of_an_older_image_is_read() -> None:
    assert report_of('{"stage": "train"}') == StageReport(stage="train")


def test_a_cause_that_only_a_newer_version_knows_is_unknown_and_keeps_its_sentence() -> None:
    report = report_of('{"stage": "train", "cause": "Overheated", "message": "GPU 3 is at 99 C"}')

    assert report is not None
    assert (report.cause, report.message) == (Cause.UNKNOWN, "GPU 3 is at 99 C")


def test_the_output_of_a_stage_that_only_a_newer_version_knows_is_left_out() -> None:
    artifacts = [
        {"stage": stage, "fingerprint": "f", "uri": "s3://m/f"} for stage in (*STAGES, "quantize")
    ]
    report = report_of(json.dumps({"stage": "tokenizer", "result": {"artifacts": artifacts}}))

    assert report is not None
    assert report.result is not None
    assert [artifact.stage for artifact in report.result.artifacts] == list(STAGES)


def test_the_progress_of_a_newer_image_is_read_without_what_is_not_known() -> None:
    facts = PodFacts.of(raw_pod())
    assert facts is not None

    assert read_answer(of_the_future(PROGRESS), facts) == PROGRESS
    assert read_answer(b'{"stage": "train"}', facts) == StageProgress(stage="train")


@pytest.mark.parametrize("name", ["cause", "stage"])
def test_what_is_of_another_kind_is_no_report(name: str) -> None:
    assert report_of(json.dumps({"stage": "train", name: 7})) is None
