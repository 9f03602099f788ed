"""CPU seconds and memory of preprocessing: raw text to shards with sentences and whole words.

Measures one process that prepares one slice, as the stage runs it; reading, words, tokens,
compression and writing are all in it, training the tokenizer is not.
"""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pretrain_api.spec.corpus import CorpusSpec, SourceSpec
from pretrain_api.spec.objective import MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PreprocessSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.stages import JobRef, PreprocessStageConfig
from pretrain_jobs.corpus.documents import Document, read_documents
from pretrain_jobs.corpus.slices import PLAN_KEY, SlicePlan, encode_plan, plan_slices
from pretrain_jobs.corpus.sources import list_source_files
from pretrain_jobs.dataset.manifest import load_dataset_manifest
from pretrain_jobs.storage import artifact, open_store
from pretrainctl.samples.demo_corpus import load_demo_corpus
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
FINGERPRINT = "benchmark0000000"


def measure_preprocess(
    corpus: Path | None = None, *, vocab_size: int = 21_128, max_seconds: float = 600
) -> dict[str, Any]:
    """Prepare a corpus (.jsonl, also compressed) in one child process and say what it took.

    `cpu_seconds` is user and system time of the child with all its threads, imports included;
    `peak_rss_mb` its largest resident set; `documents`, `tokens`, `words`, `characters` are of
    the dataset. A WordPiece tokenizer of `vocab_size` entries is trained on the corpus first.
    Without a corpus the quickstart's reviews are taken.
    """
    with tempfile.TemporaryDirectory(prefix="pretrain-benchmark-") as directory:
        workdir = Path(directory)
        config = _lay_out(corpus or _reviews(workdir), vocab_size, workdir)
        return _measure(config, workdir / "config.json", max_seconds)


def _measure(config: PreprocessStageConfig, path: Path, max_seconds: float) -> dict[str, Any]:
    started = time.monotonic()
    usage, peak_kib = _run(path, config, max_seconds)
    manifest = load_dataset_manifest(open_store(config.storage, config.dataset_uri))
    if manifest is None:
        raise RuntimeError(f"preprocessing left no dataset in {config.dataset_uri}")
    shards = [*manifest.shards("train"), *manifest.shards("validation")]
    return {
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 2),
        "wall_seconds": round(time.monotonic() - started, 2),
        "peak_rss_mb": round(peak_kib / 1024, 1),
        "documents": sum(shard.documents for shard in shards),
        "tokens": sum(shard.tokens for shard in shards),
        "words": sum(shard.words for shard in shards),
        "characters": manifest.statistics.characters,
        "vocabulary": manifest.vocab_size,
    }


def _reviews(workdir: Path) -> Path:
    path = workdir / "reviews.jsonl"
    path.write_bytes(load_demo_corpus().files()["corpus/reviews.jsonl"])
    return path


def _lay_out(corpus: Path, vocab_size: int, workdir: Path) -> PreprocessStageConfig:
    """A storage with a tokenizer and a plan, and the stage's config."""
    storage = StorageSpec(uri=(workdir / "storage").resolve().as_uri())
    source = SourceSpec(uri=corpus.resolve().as_uri())
    files = list_source_files([source], storage).files
    plan = plan_slices(files, slice_bytes=1 << 40)
    config = PreprocessStageConfig(
        job=JobRef(namespace="default", name="benchmark", uid="benchmark"),
        storage=storage,
        corpus=CorpusSpec(sources=[source]),
        preprocess=PreprocessSpec(),
        objective=ObjectiveSpec(mlm=MlmSpec()),
        tokenizer_uri=f"{storage.uri}/tokenizer",
        dataset_uri=f"{storage.uri}/dataset",
        dataset_fingerprint=FINGERPRINT,
        seed=42,
    )
    _train_tokenizer(config, plan, vocab_size, workdir / "tokenizer")
    open_store(storage, config.dataset_uri).write(PLAN_KEY, encode_plan(plan))
    return config


def _train_tokenizer(
    config: PreprocessStageConfig, plan: SlicePlan, vocab: int, directory: Path
) -> None:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))  # noqa: S106 - no secret
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab, special_tokens=list(SPECIALS), show_progress=False
    )
    tokenizer.train_from_iterator(_texts(config, plan), trainer)
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(directory / "tokenizer.json"))
    roles = {f"{name.strip('[]').lower()}_token": name for name in SPECIALS}
    (directory / "tokenizer_config.json").write_text(json.dumps(roles))
    store = open_store(config.storage, config.tokenizer_uri)
    files = artifact.upload_directory(store, directory)
    artifact.commit(store, kind="tokenizer", fingerprint=FINGERPRINT, files=files, extra={})


def _texts(config: PreprocessStageConfig, plan: SlicePlan) -> Iterator[str]:
    for part in plan.slices:
        for record in read_documents(part, plan, config.storage):
            if isinstance(record, Document):
                yield record.text


def _run(
    path: Path, config: PreprocessStageConfig, max_seconds: float
) -> tuple[resource.struct_rusage, int]:
    """Run the stage in a child; returns what it used and its largest resident set in KiB.

    The latter is asked of the kernel meanwhile: what `wait4` tells counts this process too.
    """
    path.write_text(config.model_dump_json(by_alias=True))
    command = [sys.executable, "-m", "pretrain_jobs", "preprocess", "--config", str(path)]
    environment = {**os.environ, "JOB_COMPLETION_INDEX": "0"}
    process = subprocess.Popen(command, env=environment)
    deadline = time.monotonic() + max_seconds
    peak = 0
    while time.monotonic() < deadline:
        peak = max(peak, _high_water_kib(process.pid))
        number, status, usage = os.wait4(process.pid, os.WNOHANG)
        if number:
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode:
                raise RuntimeError(f"preprocessing ended with exit code {process.returncode}")
            return usage, peak
        time.sleep(0.02)
    process.kill()
    raise RuntimeError(f"preprocessing took longer than {max_seconds} s")


def _high_water_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) if found else 0
