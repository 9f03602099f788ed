"""What a slice of preprocessing tells whoever scrapes its pod, at the moment it uploads a shard."""

from pathlib import Path
from typing import Any

import pytest
from pretrain_api.reports import PROGRESS_PORT_ENV
from pretrain_jobs.corpus.stage import main
from pretrain_jobs.process import run_stage
from pretrain_jobs.storage import artifact
from pretrain_jobs.telemetry.families import GROUPS
from pretrain_testing.corpora import PreprocessJob, json_lines, wordpiece
from pretrain_testing.scrapes import Scrape, scrape
from pretrain_testing.training import free_port

TEXTS = [f"研究生命的起源，{number}。" for number in range(40)]
TOKENIZER = wordpiece([*"研究生命的起源，。", *(str(number) for number in range(100))])


@pytest.fixture
def scrapes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Scrape]:
    """Scrapes from before each upload of a run with an empty document and a damaged line."""
    port, found = free_port(), []
    upload = artifact.upload_file

    def scraped_upload(*arguments: Any, **options: Any) -> Any:
        found.append(scrape(port))
        return upload(*arguments, **options)

    monkeypatch.setattr(artifact, "upload_file", scraped_upload)
    monkeypatch.setenv(PROGRESS_PORT_ENV, str(port))
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "0")
    job = PreprocessJob(tmp_path, corpus={"max_rejects": 5})
    job.write({"a.jsonl": json_lines([*TEXTS, ""]) + b"{broken\n"})
    job.lay_out(TOKENIZER)
    assert run_stage("preprocess", main, job.config_path, report_path=tmp_path / "report") == 0
    return [answer for answer in found if answer is not None]


def test_a_slice_tells_what_became_of_its_documents(scrapes: list[Scrape]) -> None:
    names = {family.name for family in GROUPS["Preprocessing"]}

    last = [answer for answer in scrapes if names <= answer.families][-1]

    assert last.value("pretrain_preprocess_documents_total") == len(TEXTS)
    assert (last.value("pretrain_preprocess_tokens_total") or 0) > len(TEXTS)
    assert (last.value("pretrain_preprocess_bytes_total") or 0) > 1000
    assert last.value("pretrain_preprocess_removed_total", cause="empty") == 1
    assert last.value("pretrain_preprocess_rejects_total", cause="JSON") == 1
