"""The configs that an operator writes, as stages' processes find them."""

from __future__ import annotations

from collections.abc import Iterable

from pretrain_api.reports import StageName
from pretrain_api.stages import (
    EvaluateStageConfig,
    ExportStageConfig,
    PreprocessStageConfig,
    StageConfig,
    TokenizerStageConfig,
    TrainStageConfig,
)
from pretrain_operator.observed import Manifest

CONFIGS: dict[StageName, type[StageConfig]] = {
    "tokenizer": TokenizerStageConfig,
    "preprocess": PreprocessStageConfig,
    "train": TrainStageConfig,
    "evaluate": EvaluateStageConfig,
    "export": ExportStageConfig,
}


def config_text(manifests: Iterable[Manifest], stage: StageName) -> str:
    """The JSON in the ConfigMap of a stage's first attempt among these children."""
    return next(
        str(manifest["data"]["config.json"])
        for manifest in manifests
        if manifest["kind"] == "ConfigMap"
        and manifest["metadata"]["labels"]["pretrain.dev/stage"] == stage
    )
