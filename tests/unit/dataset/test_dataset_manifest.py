"""The dataset's manifest and the statistics in it."""

from __future__ import annotations

from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.dataset.manifest import (
    KIND,
    DatasetManifest,
    ShardEntry,
    load_dataset_manifest,
)
from pretrain_jobs.dataset.statistics import CorpusStatistics, Histogram, total
from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import ObjectStore, artifact, open_store


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(StorageSpec(uri=tmp_path.as_uri()))


def manifest() -> DatasetManifest:
    entry = ShardEntry(
        path="shards/train-00000-000.h5",
        documents=2,
        sentences=3,
        words=4,
        tokens=5,
        bytes=6,
        sha256="0" * 64,
    )
    return DatasetManifest(
        fingerprint="f",
        tokenizer_sha256="1" * 64,
        dtype="uint16",
        vocab_size=21_128,
        splits={"train": (entry, entry), "validation": ()},
        statistics=CorpusStatistics(documents=4, rejects={"JSON": 1}),
    )


def commit(store: ObjectStore, extra: dict[str, object]) -> None:
    artifact.commit(store, kind=KIND, fingerprint="f", files=[], extra=extra)


def test_a_manifest_survives_its_commit(store: ObjectStore) -> None:
    commit(store, manifest().extra())

    loaded = load_dataset_manifest(store, fingerprint="f")

    assert loaded == manifest()
    assert (loaded.tokens("train"), loaded.documents("train")) == (10, 4)
    assert loaded.shards("validation") == ()


def test_without_a_manifest_there_is_no_dataset(store: ObjectStore) -> None:
    store.write("shards/train-00000-000.h5", b"whole, but nobody said so")

    assert load_dataset_manifest(store) is None


def test_another_fingerprint_is_an_error(store: ObjectStore) -> None:
    commit(store, manifest().extra())

    with pytest.raises(DataError, match="fingerprint"):
        load_dataset_manifest(store, fingerprint="other")


def test_a_damaged_manifest_tells_where(store: ObjectStore) -> None:
    commit(store, manifest().extra() | {"dtype": "int8"})

    with pytest.raises(DataError, match="damaged at dtype"):
        load_dataset_manifest(store)


def test_a_histogram_has_a_bucket_for_each_power_of_two() -> None:
    lengths = np.array([0, 1, 2, 3, 4, 7, 8, 1023, 1024])

    assert Histogram.of(lengths).counts == (1, 1, 2, 2, 1, 0, 0, 0, 0, 0, 1, 1)
    assert Histogram.of(np.empty(0, np.int64)).counts == ()


@given(parts=st.lists(st.lists(st.integers(0, 5000), max_size=20), max_size=5))
def test_histograms_add_up(parts: list[list[int]]) -> None:
    added = reduce(add, (Histogram.of(np.array(p, np.int64)) for p in parts), Histogram())

    assert added == Histogram.of(np.array([x for p in parts for x in p], np.int64))


def test_statistics_of_slices_add_up_and_keep_their_rates() -> None:
    one = CorpusStatistics(
        documents=1, characters=9, tokens=4, unknown_tokens=1, removed={"empty": 1}
    )
    two = CorpusStatistics(
        documents=2, characters=3, tokens=8, unknown_tokens=2, removed={"empty": 2, "too long": 1}
    )

    both = total([one, two])

    assert (both.documents, both.removed) == (3, {"empty": 3, "too long": 1})
    assert (both.characters_per_token, both.unknown_rate) == (1.0, 0.25)
