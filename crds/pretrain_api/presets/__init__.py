"""Architectures and presets: what a job starts from when its spec leaves something out."""

from __future__ import annotations

from collections.abc import Mapping

from pretrain_api.layers import leaf_paths
from pretrain_api.presets.architecture import Architecture, ObjectiveName
from pretrain_api.presets.architectures import ARCHITECTURES
from pretrain_api.presets.decoders import GPT2, QWEN2_5_05B
from pretrain_api.presets.encoder_decoders import BART_BASE, T5_V1_1_BASE
from pretrain_api.presets.encoders import (
    BERT_BASE,
    DEBERTA_V2_BASE,
    MODERNBERT_SMALL,
    ROBERTA_BASE,
    ROBERTA_WWM_EXT_LARGE,
)
from pretrain_api.presets.preset import Preset

__all__ = ["ARCHITECTURES", "PRESETS", "Architecture", "ObjectiveName", "Preset", "layered_paths"]

PRESETS: Mapping[str, Preset] = {
    preset.name: preset
    for preset in (
        BERT_BASE,
        ROBERTA_BASE,
        ROBERTA_WWM_EXT_LARGE,
        MODERNBERT_SMALL,
        GPT2,
        QWEN2_5_05B,
        DEBERTA_V2_BASE,
        T5_V1_1_BASE,
        BART_BASE,
    )
}
"""By name, as `model.preset` gives it."""


def layered_paths() -> set[tuple[str, ...]]:
    """Give every field of a spec (wire names) that some architecture or preset decides.

    An API server must not write a default into these: it would pass for the user's own choice.
    """
    layers = [architecture.layer for architecture in ARCHITECTURES.values()]
    layers += [preset.layer for preset in PRESETS.values()]
    return set().union(*(leaf_paths(layer) for layer in layers))
