"""Small corpora, tokenizers and preprocessing jobs on the local disk."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pretrain_api.spec.corpus import CorpusSpec, SourceSpec, ValidationSpec
from pretrain_api.spec.objective import MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PreprocessSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.stages import JobRef, PreprocessStageConfig
from pretrain_jobs.corpus.documents import Document, Reject, read_documents
from pretrain_jobs.corpus.slices import PLAN_KEY, SlicePlan, encode_plan, plan_slices
from pretrain_jobs.corpus.sources import exclude_validation, list_source_files
from pretrain_jobs.dataset.format.native import Shard, read_shard
from pretrain_jobs.dataset.manifest import DatasetManifest, Split, load_dataset_manifest
from pretrain_jobs.storage import ObjectStore, artifact, open_store
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

BERT_SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
ROLES = {"pad": 0, "unk": 1, "cls": 2, "sep": 3, "mask": 4}


def storage_at(directory: Path) -> StorageSpec:
    return StorageSpec(uri=directory.as_uri())


def json_lines(texts: Iterable[object]) -> bytes:
    lines = (json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts)
    return "".join(lines).encode()


def read_file(
    directory: Path,
    name: str,
    data: bytes,
    *,
    slice_bytes: int = 1 << 40,
    **source: Any,
) -> list[Document | Reject]:
    """What a file with these bytes reads as, over all of its slices in order."""
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    storage = storage_at(directory)
    listing = list_source_files([SourceSpec(uri=name, **source)], storage)
    plan = plan_slices(listing.files, slice_bytes=slice_bytes)
    return [record for part in plan.slices for record in read_documents(part, plan, storage)]


def texts_of(records: Iterable[Document | Reject]) -> list[str]:
    return [record.text for record in records if isinstance(record, Document)]


def rejects_of(records: Iterable[Document | Reject]) -> list[Reject]:
    return [record for record in records if isinstance(record, Reject)]


def wordpiece(pieces: Iterable[str], *, lowercase: bool = True) -> Tokenizer:
    """BERT's tokenizer with these pieces after its special tokens; never reads those from text."""
    names = dict.fromkeys([*BERT_SPECIALS, *pieces])
    vocabulary = {piece: number for number, piece in enumerate(names)}
    model = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(BERT_SPECIALS))
    tokenizer.encode_special_tokens = True
    return tokenizer


def save_tokenizer_artifact(store: ObjectStore, tokenizer: Tokenizer) -> None:
    """Commit a tokenizer as the tokenizer stage does."""
    roles = {f"{name.strip('[]').lower()}_token": name for name in BERT_SPECIALS}
    store.write("tokenizer.json", tokenizer.to_str().encode())
    store.write("tokenizer_config.json", json.dumps(roles).encode())
    store.write("special_tokens_map.json", json.dumps(roles).encode())
    files = [
        artifact.FileEntry(info.key, info.size, _sha256(store, info.key)) for info in store.list()
    ]
    artifact.commit(store, kind="tokenizer", fingerprint="tok", files=files, extra={})


def _sha256(store: ObjectStore, key: str) -> str:
    return hashlib.sha256(store.read(key)).hexdigest()


@dataclass(frozen=True)
class PreprocessJob:
    """A preprocessing job whose storage is a local directory.

    `dataset` is the name of the dataset's directory, so that several can be compared.
    """

    directory: Path
    sources: tuple[SourceSpec, ...] = (SourceSpec(uri="corpus/"),)
    slice_bytes: int = 1 << 30
    preprocess: PreprocessSpec = field(default_factory=PreprocessSpec)
    corpus: Mapping[str, Any] = field(default_factory=dict)
    mlm: MlmSpec = field(default_factory=MlmSpec)
    validation_fraction: float = 0.0
    dataset: str = "dataset"

    @property
    def storage(self) -> StorageSpec:
        return storage_at(self.directory / "storage")

    @property
    def store(self) -> ObjectStore:
        return open_store(self.storage, f"{self.storage.uri}/{self.dataset}")

    @property
    def dataset_directory(self) -> Path:
        return self.directory / "storage" / self.dataset

    def into(self, dataset: str) -> PreprocessJob:
        """The same job with another output."""
        return replace(self, dataset=dataset)

    def write(self, files: Mapping[str, bytes]) -> None:
        """Put files under the corpus directory."""
        for name, data in files.items():
            path = self.directory / "storage" / "corpus" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def lay_out(self, tokenizer: Tokenizer | None = None) -> SlicePlan:
        """Write tokenizer, plan and config, as the earlier stage and the operator do."""
        if tokenizer is not None:
            save_tokenizer_artifact(
                open_store(self.storage, f"{self.storage.uri}/tokenizer"), tokenizer
            )
        config = self.config()
        listing = list_source_files(self.sources, self.storage)
        held_out = config.corpus.validation.sources
        files = listing.files
        if held_out:
            validation = list_source_files(held_out, self.storage, split="validation")
            files = exclude_validation(files, validation.files).files
        plan = plan_slices(files, slice_bytes=self.slice_bytes, warnings=listing.warnings)
        self.store.write(PLAN_KEY, encode_plan(plan))
        self.config_path.write_text(config.model_dump_json(by_alias=True), encoding="utf-8")
        return plan

    @property
    def config_path(self) -> Path:
        return self.directory / f"{self.dataset}.json"

    def config(self) -> PreprocessStageConfig:
        validation = ValidationSpec(fraction=self.validation_fraction)
        corpus = {"sources": list(self.sources), "validation": validation, **self.corpus}
        return PreprocessStageConfig(
            job=JobRef(namespace="default", name="job", uid="uid"),
            storage=self.storage,
            corpus=CorpusSpec(**corpus),
            preprocess=self.preprocess,
            objective=ObjectiveSpec(mlm=self.mlm),
            tokenizer_uri=f"{self.storage.uri}/tokenizer",
            dataset_uri=f"{self.storage.uri}/{self.dataset}",
            dataset_fingerprint="fingerprint",
            seed=7,
        )

    def start(self, index: int, **environment: str) -> subprocess.Popen[str]:
        """Start the stage's process for one slice."""
        return subprocess.Popen(
            [sys.executable, "-m", "pretrain_jobs", "preprocess", "--config", self.config_path],
            env={**os.environ, "JOB_COMPLETION_INDEX": str(index), **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, indexes: Sequence[int], *, parallelism: int = 1, **environment: str) -> None:
        """Run slices in processes, so many at once; all must end well."""
        for first in range(0, len(indexes), parallelism):
            running = [self.start(i, **environment) for i in indexes[first : first + parallelism]]
            for process in running:
                _, errors = process.communicate()
                assert process.returncode == 0, errors

    def manifest(self) -> DatasetManifest | None:
        return load_dataset_manifest(self.store)

    def shards(self, split: Split = "train") -> list[Shard]:
        manifest = self.manifest()
        assert manifest is not None, "the dataset was not completed"
        return [read_shard(self.dataset_directory / entry.path) for entry in manifest.shards(split)]

    def content(self) -> dict[str, bytes]:
        """Every object of the dataset by its key."""
        return {info.key: self.store.read(info.key) for info in self.store.list()}
