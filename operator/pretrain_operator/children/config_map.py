"""The ConfigMap with a stage's config; it holds no secret."""

from __future__ import annotations

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.metadata import child_metadata
from pretrain_operator.children.stage_configs import stage_config
from pretrain_operator.observed import Manifest

CONFIG_KEY = "config.json"


def build_config_map(attempt: Attempt) -> Manifest:
    """Immutable, for an attempt never changes: another config is another attempt."""
    config = stage_config(attempt).model_dump_json(indent=2, by_alias=True)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": child_metadata(attempt),
        "immutable": True,
        "data": {CONFIG_KEY: config},
    }
