"""The training that is measured: the quickstart's model and batch on made-up tokens."""

from __future__ import annotations

import socket
from pathlib import Path

import numpy as np
from pretrain_api.spec.lifecycle import CheckpointSpec
from pretrain_api.spec.model import ModelSpec
from pretrain_api.spec.objective import MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PackingSpec, PreprocessSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.spec.training import TrainingSpec
from pretrain_api.spec.workers import WorkersSpec
from pretrain_api.stages import JobRef, RendezvousConfig, TrainStageConfig
from pretrain_jobs.dataset.format.native import Shard, write_shard
from pretrain_jobs.dataset.manifest import KIND, DatasetManifest, ShardEntry
from pretrain_jobs.dataset.statistics import CorpusStatistics
from pretrain_jobs.storage import artifact, open_store
from pretrain_jobs.tokenizer.files import TOKENIZER_FILE
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

RANKS = 2
VOCABULARY = 5536
FINGERPRINT = "benchmark0000000"
GLOBAL_BATCH, LENGTH = 32, 64


def training_config(directory: Path, *, max_steps: int, stage: int) -> TrainStageConfig:
    """The quickstart's model and batch; nothing is evaluated or saved before the last step."""
    storage = f"file://{directory}"
    return TrainStageConfig(
        job=JobRef(namespace="default", name="benchmark", uid="0" * 32),
        storage=StorageSpec(uri=storage),
        dataset_uri=f"file://{directory.parent}/dataset",
        dataset_fingerprint=FINGERPRINT,
        model_uri=f"{storage}/model",
        model_fingerprint=FINGERPRINT,
        checkpoint_uri=f"{storage}/checkpoints",
        model=ModelSpec(
            architecture="modernbert",
            config={
                "hidden_size": 128,
                "num_hidden_layers": 2,
                "num_attention_heads": 2,
                "intermediate_size": 256,
            },
        ),
        objective=ObjectiveSpec(mlm=MlmSpec(probability=0.2)),
        preprocess=PreprocessSpec(
            sequence_length=LENGTH, packing=PackingSpec(strategy="fullSentences")
        ),
        training=TrainingSpec.model_validate(
            {
                "globalBatchSize": GLOBAL_BATCH,
                "microBatchSize": GLOBAL_BATCH // RANKS,
                "maxSteps": max_steps,
                "precision": "fp32",
                "optimizer": {"learningRate": 2e-3},
                "schedule": {"warmupSteps": 10},
                "zero": {"stage": stage},
                "evaluation": {"everySteps": 10**6, "maxSamples": GLOBAL_BATCH},
            }
        ),
        workers=WorkersSpec(processes_per_worker=RANKS, device="cpu"),
        checkpoint=CheckpointSpec(every_steps=10**6),
        rendezvous=RendezvousConfig(
            host="127.0.0.1", port=free_port(), run_id="benchmark", timeout_seconds=120
        ),
    )


def make_dataset(root: Path) -> None:
    """A committed dataset of made-up tokens, enough that no epoch ends while measuring."""
    random = np.random.default_rng(1)
    sentences = random.integers(10, 40, 40_000)
    offsets = np.concatenate([[0], np.cumsum(sentences)]).astype(np.int64)
    tokens = (random.zipf(1.2, offsets[-1]) % (VOCABULARY - 5) + 5).astype(np.uint16)
    starts = random.random(len(tokens)) < 0.6
    starts[offsets[:-1]] = True
    shard = Shard(tokens, offsets[::20].copy(), offsets, starts)
    scratch = root.with_name("dataset-files")
    (scratch / "shards").mkdir(parents=True)
    (scratch / "tokenizer").mkdir()
    write_shard(scratch / "shards/train-00000-000.h5", shard)
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = names + [f"w{number}" for number in range(VOCABULARY - len(names))]
    tokenizer = Tokenizer(WordLevel({word: n for n, word in enumerate(words)}, "[UNK]"))
    tokenizer.add_special_tokens(names)
    tokenizer.save(str(scratch / "tokenizer" / TOKENIZER_FILE))
    store = open_store(StorageSpec(uri=f"file://{root}"))
    files = artifact.upload_directory(store, scratch)
    stored = next(entry for entry in files if entry.path.endswith(".h5"))
    entry = ShardEntry(
        path=stored.path,
        documents=shard.documents,
        sentences=shard.sentences,
        words=shard.words,
        tokens=len(tokens),
        bytes=stored.size,
        sha256=stored.sha256,
    )
    manifest = DatasetManifest(
        fingerprint=FINGERPRINT,
        tokenizer_sha256="0" * 64,
        dtype="uint16",
        vocab_size=VOCABULARY,
        splits={"train": (entry,), "validation": ()},
        statistics=CorpusStatistics(),
    )
    artifact.commit(store, kind=KIND, fingerprint=FINGERPRINT, files=files, extra=manifest.extra())


def free_port() -> int:
    """A loopback port that nobody listens on, for now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
