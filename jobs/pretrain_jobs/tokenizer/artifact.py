"""The committed tokenizer: made once under its fingerprint, reused by every later job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.spec.tokenizer import TokenizerTrainingSpec

from pretrain_jobs.corpus.sources import SourceFile
from pretrain_jobs.progress import ProgressReporter
from pretrain_jobs.storage import ObjectStore
from pretrain_jobs.storage.artifact import (
    Manifest,
    commit,
    download_artifact,
    is_committed,
    load,
    upload_directory,
)
from pretrain_jobs.tokenizer.files import tokenizer_sha256
from pretrain_jobs.tokenizer.load import fetch_tokenizer
from pretrain_jobs.tokenizer.sample import sample_texts
from pretrain_jobs.tokenizer.special import load_special_tokens
from pretrain_jobs.tokenizer.train import train_tokenizer

KIND = "tokenizer"


@dataclass(frozen=True)
class ReadyTokenizer:
    """A committed tokenizer, its files also in a local directory."""

    directory: Path
    sha256: str
    cached: bool
    warnings: tuple[str, ...]


def ensure_tokenizer(
    store: ObjectStore,
    *,
    fingerprint: str,
    spec: PretrainJobSpec,
    storage: StorageSpec,
    files: Sequence[SourceFile],
    directory: Path,
    progress: ProgressReporter,
) -> ReadyTokenizer:
    """Give the tokenizer under `fingerprint`: download it, or else make and commit it.

    `files` are the training files, from which the sample is taken.
    """
    manifest = _committed(store, fingerprint)
    if manifest is not None:
        download_artifact(store, manifest, directory)
        return _ready(directory, manifest.extra, cached=True)
    extra = _make(spec, storage=storage, files=files, directory=directory, progress=progress)
    extra["tokenizerSha256"] = tokenizer_sha256(directory)
    extra["length"] = load_special_tokens(directory).length
    entries = upload_directory(store, directory)
    commit(store, kind=KIND, fingerprint=fingerprint, files=entries, extra=extra)
    return _ready(directory, extra, cached=False)


def _committed(store: ObjectStore, fingerprint: str) -> Manifest | None:
    if is_committed(store, kind=KIND, fingerprint=fingerprint):
        return load(store, kind=KIND, fingerprint=fingerprint)
    return None


def _ready(directory: Path, extra: dict[str, Any], *, cached: bool) -> ReadyTokenizer:
    return ReadyTokenizer(
        directory=directory,
        sha256=tokenizer_sha256(directory),
        cached=cached,
        warnings=tuple(extra.get("warnings", ())),
    )


def _make(
    spec: PretrainJobSpec,
    *,
    storage: StorageSpec,
    files: Sequence[SourceFile],
    directory: Path,
    progress: ProgressReporter,
) -> dict[str, Any]:
    """Write the tokenizer's files; what the manifest says of how they came to be."""
    if spec.tokenizer.uri is not None:
        progress.update(message="loading the tokenizer", force=True)
        fetch_tokenizer(storage, spec.tokenizer.uri, directory)
        return {"algorithm": None, "vocabSize": None, "warnings": []}
    training = spec.tokenizer.train or TokenizerTrainingSpec()
    progress.update(
        total=training.max_sample_bytes, unit="bytes", message="sampling text", force=True
    )
    sample = sample_texts(
        files,
        storage,
        max_bytes=training.max_sample_bytes,
        cleaning=spec.corpus.cleaning,
        progress=lambda size: progress.update(done=size),
    )
    progress.update(total=sample.size, done=sample.size, message="training", force=True)
    trained = train_tokenizer(sample.texts, training, architecture=spec.model.architecture)
    trained.save(directory)
    return {
        "algorithm": trained.algorithm,
        "vocabSize": training.vocab_size,
        "sampleBytes": sample.size,
        "warnings": list(trained.warnings),
    }
