"""The artifacts that training meets in storage: the dataset that it needs, the model it leaves."""

from __future__ import annotations

from pretrain_api.stages import TrainStageConfig

from pretrain_jobs.errors import DataError
from pretrain_jobs.storage import artifact, open_store

MODEL_KIND = "model"
DATASET_KIND = "dataset"


def model_is_committed(config: TrainStageConfig) -> bool:
    """Whether the trained model is there already, whole."""
    store = open_store(config.storage, config.model_uri)
    return artifact.is_committed(store, kind=MODEL_KIND, fingerprint=config.model_fingerprint)


def require_dataset(config: TrainStageConfig) -> None:
    """DataError unless there is a committed dataset of the config's fingerprint."""
    store = open_store(config.storage, config.dataset_uri)
    if artifact.load(store, kind=DATASET_KIND, fingerprint=config.dataset_fingerprint) is None:
        raise DataError(
            f"there is no dataset under {config.dataset_uri}: its manifest.json is missing. "
            "Preprocessing writes it last; run that stage again"
        )
