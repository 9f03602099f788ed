"""What lies in the storage was written by another version: read, or refused by its number."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.manifest import (
    Abandonment,
    FirstManifest,
    Origin,
    RankManifest,
    StoredFile,
    commit_of,
    decode_abandonment,
    decode_commit,
    decode_first_manifest,
    decode_rank_manifest,
)
from pretrain_jobs.corpus.slice_manifest import SliceManifest, load_slice, slice_key
from pretrain_jobs.corpus.slices import decode_plan, plan_slices
from pretrain_jobs.corpus.sources import SourceFile
from pretrain_jobs.dataset.manifest import (
    KIND,
    DatasetManifest,
    ShardEntry,
    load_dataset_manifest,
)
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.dataset.statistics import CorpusStatistics
from pretrain_jobs.errors import DataError
from pretrain_jobs.evaluate.results import Figure, Results, RunResult, TaskResult
from pretrain_jobs.storage import ObjectStore, artifact, open_store
from pretrain_jobs.train.state import Progress
from pretrain_testing.future_fields import FUTURE, of_the_future

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = CheckpointKey(step=4, generation=2, attempt="ab" * 16)
ORIGIN = Origin(lineage="feed", world_size=1, zero_stage=1, versions={"torch": "2"})
RANK = RankManifest(
    rank=0,
    step=KEY.step,
    generation=KEY.generation,
    attempt=KEY.attempt,
    files=(StoredFile(name="state.pt", size=10, sha256="11" * 32),),
)
FIRST = FirstManifest(**RANK.model_dump(), origin=ORIGIN)
COMMIT = commit_of(KEY, ORIGIN, [RANK], NOW)
SHARD = ShardEntry(
    path="shards/a.h5", documents=1, sentences=1, words=1, tokens=1, bytes=1, sha256="0" * 64
)
SLICE = SliceManifest(
    fingerprint="f",
    index=0,
    shards={"train": (SHARD,)},
    rejects=None,
    statistics=CorpusStatistics(documents=1),
)
PLAN = plan_slices(
    [SourceFile(uri="s3://c/a", size=9, etag="e", format="text", compression="none")],
    slice_bytes=9,
)
DATASET = DatasetManifest(
    fingerprint="f",
    tokenizer_sha256="1" * 64,
    dtype="uint16",
    vocab_size=9,
    splits={"train": (SHARD,)},
    statistics=CorpusStatistics(documents=1),
)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(StorageSpec(uri=tmp_path.as_uri()))


def test_a_newer_versions_checkpoint_is_read_without_what_is_not_known() -> None:
    assert decode_commit(of_the_future(COMMIT), KEY) == COMMIT
    assert decode_rank_manifest(of_the_future(RANK), KEY, 0) == RANK
    assert decode_first_manifest(of_the_future(FIRST), KEY) == (ORIGIN, RANK)


def test_a_newer_versions_mark_is_no_commit_and_its_commit_is_no_mark() -> None:
    mark = Abandonment(abandoned_by=3, time=NOW)

    assert decode_abandonment(of_the_future(mark)) == mark
    assert decode_abandonment(of_the_future(COMMIT)) is None
    with pytest.raises(DataError, match="COMMIT is damaged"):
        decode_commit(of_the_future(mark), KEY)


def test_the_manifests_of_a_version_that_told_no_format_are_read() -> None:
    ranks = json.loads(RANK.model_dump_json(exclude={"format_version"}))
    commit = json.loads(COMMIT.model_dump_json()) | {"ranks": [ranks]}

    assert decode_rank_manifest(json.dumps(ranks).encode(), KEY, 0) == RANK
    assert decode_commit(json.dumps(commit).encode(), KEY) == COMMIT


def refused(document: dict[str, Any]) -> bytes:
    """A document of format 2, of which nothing else may be known."""
    return json.dumps({**document, "formatVersion": 2}).encode()


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda data: decode_commit(data, KEY), "COMMIT"),
        (lambda data: decode_rank_manifest(data, KEY, 3), "the manifest of rank 3"),
        (lambda data: decode_first_manifest(data, KEY), "the manifest of rank 0"),
        (decode_plan, r"plan\.json"),
    ],
    ids=["commit", "rank", "first rank", "plan"],
)
@pytest.mark.parametrize("document", [{}, COMMIT.model_dump(mode="json")], ids=["other", "alike"])
def test_another_format_is_refused_by_its_number(
    read: Callable[[bytes], object], what: str, document: dict[str, Any]
) -> None:
    with pytest.raises(DataError, match=rf"{what} is of format 2 where 1 was expected.*image"):
        read(refused(document))


def test_a_newer_versions_plan_and_slices_are_read_without_what_is_not_known(
    store: ObjectStore,
) -> None:
    store.write(slice_key(0), of_the_future(SLICE))

    assert decode_plan(of_the_future(PLAN)) == PLAN
    assert load_slice(store, 0, "f") == SLICE


def test_a_slice_of_another_format_counts_as_none(store: ObjectStore) -> None:
    store.write(slice_key(0), of_the_future(SLICE.model_copy(update={"format_version": 2})))

    assert load_slice(store, 0, "f") is None


def test_a_newer_versions_dataset_is_read_without_what_is_not_known(store: ObjectStore) -> None:
    manifest = json.loads(of_the_future(DATASET)) | {"formatVersion": 1, "kind": KIND}
    entry: dict[str, Any] = {"path": "a", "size": 1, "sha256": "0" * 64}
    store.write("manifest.json", json.dumps({**manifest, "files": [entry | FUTURE]}).encode())

    loaded = artifact.load(store, kind=KIND)

    assert loaded is not None
    assert loaded.files == (artifact.FileEntry(**entry),)
    assert load_dataset_manifest(store) == DATASET


def test_an_artifact_of_another_format_is_refused_by_its_number(store: ObjectStore) -> None:
    store.write("manifest.json", refused({"everything": "else"}))

    with pytest.raises(DataError, match=r"manifest\.json is of format 2 where 1 was expected"):
        artifact.load(store, kind=KIND)


def test_a_newer_versions_evaluation_is_read_without_what_is_not_known() -> None:
    run = RunResult(
        task="t",
        initialisation="random",
        seed=1,
        train_samples=1,
        test_samples=1,
        steps=1,
        metrics={"accuracy": 0.5},
    )
    figures = {"random": {"accuracy": Figure(mean=0.5, stdev=0.0)}}
    task = TaskResult.model_validate(
        {"name": "t", "labels": ["a"], "runs": [run], "figures": figures, "difference": {}}
    )

    assert Results.model_validate_json(of_the_future(Results(tasks=[task]))).tasks == [task]


def test_a_newer_versions_training_state_is_read_without_what_is_not_known() -> None:
    progress = Progress(step=3, cursor=Cursor("d", seed=1, samples_per_epoch=9), log=({"step": 3},))
    stored = json.loads(json.dumps(progress.to_json()))
    for part in ("cursor", "tokens", "anomalies", "losses"):
        stored[part] |= FUTURE

    assert Progress.from_json(stored | FUTURE) == progress


def test_a_training_state_without_what_was_counted_later_is_read() -> None:
    progress = Progress(step=3, cursor=Cursor("d", seed=1, samples_per_epoch=9))
    stored = progress.to_json()
    del stored["anomalies"]["spikes"]

    assert Progress.from_json(stored) == replace(progress, time_sheet=None)
