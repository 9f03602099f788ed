"""What a model card tells, gathered from the artifacts and free of their formats."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain_api.stages import ExportStageConfig

from pretrain_jobs.dataset.manifest import DatasetManifest, load_dataset_manifest
from pretrain_jobs.errors import DataError
from pretrain_jobs.evaluate.results import KIND as EVALUATION_KIND
from pretrain_jobs.evaluate.results import RESULTS_FILE, Results
from pretrain_jobs.storage import artifact, open_store

TRAINING_FILE = "training.json"


@dataclass(frozen=True)
class ModelFacts:
    """The exported model's own figures."""

    model_type: str
    masked: bool
    parameters: int
    rows: int
    tokens: int
    positions: int
    dtype: str
    tied: bool
    output_key: str


@dataclass(frozen=True)
class Facts:
    """Everything that a card is made from; what an artifact lacks is empty or None."""

    config: ExportStageConfig
    model: ModelFacts
    training: dict[str, Any]
    dataset: DatasetManifest | None
    results: Results | None
    evaluation_fingerprint: str


def gather_facts(config: ExportStageConfig, directory: Path, model: ModelFacts) -> Facts:
    """Read the trained model's documents in `directory`, the dataset's manifest, the evaluation.

    DataError when the evaluation that the job asks for is not committed. A dataset that was
    deleted since leaves its figures out.
    """
    fingerprint, results = _evaluation(config)
    dataset_store = open_store(config.storage, config.dataset_uri)
    return Facts(
        config=config,
        model=model,
        training=_document(directory / TRAINING_FILE),
        dataset=load_dataset_manifest(dataset_store, fingerprint=config.dataset_fingerprint),
        results=results,
        evaluation_fingerprint=fingerprint,
    )


def _document(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    return document


def _evaluation(config: ExportStageConfig) -> tuple[str, Results | None]:
    if not config.evaluation_uri:
        return "", None
    store = open_store(config.storage, config.evaluation_uri)
    manifest = artifact.load(store, kind=EVALUATION_KIND)
    if manifest is None:
        raise DataError(f"{config.evaluation_uri} holds no committed evaluation")
    return manifest.fingerprint, Results.model_validate_json(store.read(RESULTS_FILE))
