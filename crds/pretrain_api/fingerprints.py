"""Fingerprints of stages: pure hashes of all that decides an output.

A fingerprint is the first 16 hexadecimal digits of SHA-256 over canonical JSON of its parts.
The corpus part (source keys, sizes, ETags) and the tokenizer's bytes are known only to the
tokenizer stage; everything else follows from the resolved spec.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from pydantic import BaseModel

from pretrain_api.spec import PretrainJobSpec

DATASET_FORMAT_VERSION = 1
MODEL_FORMAT_VERSION = 1
EVALUATION_FORMAT_VERSION = 1
EXPORT_FORMAT_VERSION = 1


def fingerprint(**parts: Any) -> str:
    """Hash named parts (JSON values or models) into 16 hexadecimal digits."""
    text = json.dumps(
        {name: _plain(value) for name, value in parts.items()},
        sort_keys=True,
        ensure_ascii=True,
        separators=(",", ":"),
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json", by_alias=True)
    return value


def tokenizer_fingerprint(sources: list[dict[str, Any]], spec: PretrainJobSpec) -> str:
    """Of the tokenizer: its sources (key, size, etag each), its config and the architecture.

    A trained one also depends on how the corpus is read, split and cleaned.
    """
    return fingerprint(
        kind="tokenizer",
        sources=sources,
        tokenizer=spec.tokenizer,
        architecture=spec.model.architecture,
        corpus=None if spec.tokenizer.uri else spec.corpus,
        seed=spec.training.seed,
    )


def dataset_fingerprint(
    sources: list[dict[str, Any]], tokenizer_sha256: str, spec: PretrainJobSpec
) -> str:
    """Of the dataset: neither parallelism nor anything of packing or training enters."""
    preprocess = spec.preprocess
    mlm = spec.objective.mlm
    return fingerprint(
        kind="dataset",
        version=DATASET_FORMAT_VERSION,
        sources=sources,
        corpus=spec.corpus,
        tokenizer=tokenizer_sha256,
        end_of_document=spec.tokenizer.end_of_document,
        slice_bytes=preprocess.slice_bytes,
        shard_size=preprocess.shard_size,
        segmenter=mlm.segmenter if mlm and mlm.whole_word else None,
        user_dictionary=preprocess.user_dictionary,
        seed=spec.training.seed,
    )


def model_fingerprint(dataset: str, spec: PretrainJobSpec) -> str:
    """Of the trained weights: the world size and threads decide sums, so they enter."""
    workers = spec.workers
    return fingerprint(
        kind="model",
        version=MODEL_FORMAT_VERSION,
        dataset=dataset,
        model=spec.model,
        objective=spec.objective,
        sequence_length=spec.preprocess.sequence_length,
        packing=spec.preprocess.packing,
        training=spec.training.model_dump(
            mode="json", by_alias=True, exclude={"logging", "evaluation"}
        ),
        world_size=workers.replicas * workers.processes_per_worker,
        threads=workers.threads_per_process,
        device=workers.device,
    )


def evaluation_fingerprint(
    model: str, task_sources: list[dict[str, Any]], spec: PretrainJobSpec
) -> str:
    """Of the evaluation's results."""
    return fingerprint(
        kind="evaluation",
        version=EVALUATION_FORMAT_VERSION,
        model=model,
        sources=task_sources,
        tasks=[task.model_dump(mode="json", by_alias=True) for task in spec.evaluation.tasks],
    )


def export_fingerprint(model: str, evaluation: str, spec: PretrainJobSpec) -> str:
    """Of the exported directory."""
    export = spec.export.model_dump(mode="json", by_alias=True, exclude={"resources", "uri"})
    return fingerprint(
        kind="export",
        version=EXPORT_FORMAT_VERSION,
        model=model,
        evaluation=evaluation,
        export=export,
    )
