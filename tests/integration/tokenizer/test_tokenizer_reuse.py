"""A second job over the same corpus reads none of it: two seconds, beside the S3 server's start."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pretrain_api.reports import StageResult
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.stages import JobRef, TokenizerStageConfig
from pretrain_jobs.storage import ObjectStore, open_store
from pretrain_jobs.storage.s3_client import renew_clients
from pretrain_jobs.tokenizer.stage import main
from pretrain_testing.s3 import S3Server
from pretrain_testing.s3_faults import FaultyServer, faulty
from pretrain_testing.tokenizer_texts import job_spec, texts, write_config

KEY = "corpus/a.jsonl"
FEW = 4
"""Requests for a corpus of some kilobytes."""


@pytest.fixture
def storage(weed: S3Server, monkeypatch: pytest.MonkeyPatch) -> StorageSpec:
    for name, value in weed.environment.items():
        monkeypatch.setenv(name, value)
    renew_clients()
    return weed.storage("tests", "reuse")


def write_corpus(store: ObjectStore, count: int) -> None:
    store.write(KEY, "\n".join(json.dumps({"text": text}) for text in texts(count)).encode())


def run(folder: Path, storage: StorageSpec, job: str) -> StageResult:
    """Run the stage for a job of this name."""
    spec = job_spec(folder).model_copy(update={"storage": storage})
    config = TokenizerStageConfig(
        job=JobRef(namespace="default", name=job, uid=job), storage=storage, spec=spec
    )
    return main(write_config(folder / f"{job}.json", config))


def bodies_read(proxy: FaultyServer) -> int:
    """How often the corpus was read, not only listed."""
    return sum(r.method == "GET" and r.path.partition("?")[0].endswith(KEY) for r in proxy.requests)


def test_a_second_job_reads_no_byte_of_a_corpus_that_has_not_changed(
    weed: S3Server, storage: StorageSpec, tmp_path: Path
) -> None:
    direct = open_store(storage)
    write_corpus(direct, 60)
    with faulty(weed) as proxy:
        behind = storage.model_copy(update={"endpoint_url": proxy.server.endpoint_url})
        first = run(tmp_path, behind, "first")
        assert 0 < bodies_read(proxy) <= FEW
        proxy.requests.clear()

        second = run(tmp_path, behind, "second")
        assert bodies_read(proxy) == 0
        assert second.artifacts[0].cached
        write_corpus(direct, 61)

        third = run(tmp_path, behind, "third")
        assert bodies_read(proxy) > 0

    prints = [[a.fingerprint for a in result.artifacts[:2]] for result in (first, second, third)]
    assert prints[0] == prints[1]
    assert not set(prints[2]) & set(prints[0])
