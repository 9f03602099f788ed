"""What a stage's process leaves as its report."""

from __future__ import annotations

from pathlib import Path

import pytest
from pretrain_api.reports import StageReport, StageResult
from pretrain_jobs.errors import PreemptedError, StageError, StorageDeniedError, StorageRefusedError
from pretrain_jobs.process import run_stage
from pretrain_testing.plan_simulator import commit


@pytest.mark.parametrize(
    ("kind", "retryable", "mendable"),
    [(StorageDeniedError, False, True), (StorageRefusedError, False, False)],
)
def test_a_report_tells_whether_a_failure_passes_or_may_be_mended(
    kind: type[StageError], retryable: bool, mendable: bool, tmp_path: Path
) -> None:
    def main(_config: Path) -> StageResult:
        raise kind("refused (403)")

    config, path = tmp_path / "config.json", tmp_path / "report"
    config.write_text("{}")

    code = run_stage("export", main, config, report_path=path)

    report = StageReport.model_validate_json(path.read_bytes())
    assert code == kind("").exit_code == 69
    assert (report.retryable, report.mendable) == (retryable, mendable)


def test_the_report_of_a_training_that_was_stopped_has_its_newest_checkpoint(
    tmp_path: Path,
) -> None:
    def main(_config: Path) -> StageResult:
        error = PreemptedError("stopped by SIGTERM after step 450")
        error.checkpoint = commit(450)
        raise error

    config, path = tmp_path / "config.json", tmp_path / "report"
    config.write_text("{}")

    run_stage("train", main, config, report_path=path)

    report = StageReport.model_validate_json(path.read_bytes())
    assert report.result == StageResult(checkpoint=commit(450))
