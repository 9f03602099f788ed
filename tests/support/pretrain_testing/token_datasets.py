"""Committed native datasets of made-up tokens, for tests that read one from a store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pretrain_api.spec.storage import StorageSpec
from pretrain_jobs.dataset.format.native import Shard, write_shard
from pretrain_jobs.dataset.manifest import KIND, DatasetManifest, ShardEntry, Split
from pretrain_jobs.dataset.statistics import CorpusStatistics
from pretrain_jobs.storage import ObjectStore, artifact, open_store

from pretrain_testing.token_shards import Documents, memory_shards

FINGERPRINT = "0123456789abcdef"


def commit_token_dataset(
    directory: Path, *, train: Sequence[Documents], validation: Sequence[Documents] | None = None
) -> tuple[ObjectStore, DatasetManifest]:
    """A dataset under `directory`/store; each shard is given by its documents' sentences."""
    store = open_store(StorageSpec(uri=f"file://{directory}/store"))
    splits: dict[Split, tuple[ShardEntry, ...]] = {
        "train": _write(directory, store, "train", train),
        "validation": _write(directory, store, "validation", validation or []),
    }
    manifest = DatasetManifest(
        fingerprint=FINGERPRINT,
        tokenizer_sha256="0" * 64,
        dtype="uint32",
        vocab_size=100_000,
        splits=splits,
        statistics=CorpusStatistics(),
    )
    files = [
        artifact.FileEntry(entry.path, entry.bytes, entry.sha256)
        for entries in splits.values()
        for entry in entries
    ]
    artifact.commit(store, kind=KIND, fingerprint=FINGERPRINT, files=files, extra=manifest.extra())
    return store, manifest


def _write(
    directory: Path, store: ObjectStore, split: Split, shards: Sequence[Documents]
) -> tuple[ShardEntry, ...]:
    entries = []
    corpus = memory_shards(*shards)
    for number, (shard, layout) in enumerate(zip(corpus.shards, corpus.layouts, strict=True)):
        path = directory / f"{split}-{number}.h5"
        native = Shard(
            shard.tokens, layout.document_offsets, layout.sentence_offsets, shard.word_starts
        )
        write_shard(path, native)
        key = f"shards/{split}-00000-{number:03d}.h5"
        uploaded = artifact.upload_file(store, path, key=key)
        path.unlink()
        entries.append(
            ShardEntry(
                path=key,
                documents=native.documents,
                sentences=native.sentences,
                words=native.words,
                tokens=len(native.tokens),
                bytes=uploaded.size,
                sha256=uploaded.sha256,
            )
        )
    return tuple(entries)
