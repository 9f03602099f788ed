"""Running the preprocessing stage in the test's own process."""

from __future__ import annotations

import pytest
from pretrain_api.reports import StageResult
from pretrain_jobs.corpus.stage import main
from pretrain_testing.corpora import PreprocessJob
from pretrain_testing.sentence_jobs import Run


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs one slice of a job in this process."""

    def prepare(job: PreprocessJob, index: int = 0) -> StageResult:
        monkeypatch.setenv("JOB_COMPLETION_INDEX", str(index))
        return main(job.config_path)

    return prepare
