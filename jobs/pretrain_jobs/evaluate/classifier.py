"""The classifier of a run: the trained model, or its like with random weights, under a new head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForSequenceClassification
from transformers.utils import logging as transformers_logging

from pretrain_jobs.errors import DataError
from pretrain_jobs.evaluate.results import Initialisation

_NEW_PARTS = ("pooler",)
"""Parts of a base model that only a classifier has."""


def build_classifier(
    directory: Path, initialisation: Initialisation, *, classes: int, padding: int, seed: int
) -> Any:
    """A sequence classifier in fp32; the seed decides its head, and all weights of a random one.

    DataError when weights of the trained model do not reach the classifier.
    """
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    config = AutoConfig.from_pretrained(directory, num_labels=classes, pad_token_id=padding)
    torch.manual_seed(seed)
    if initialisation == "random":
        build: Any = AutoModelForSequenceClassification.from_config
        return build(config, dtype=torch.float32)
    model, info = AutoModelForSequenceClassification.from_pretrained(
        directory, config=config, dtype=torch.float32, output_loading_info=True
    )
    lost = [
        key
        for key in sorted(info["missing_keys"])
        if key.startswith(f"{model.base_model_prefix}.")
        and not set(_NEW_PARTS) & set(key.split("."))
    ]
    if lost:
        raise DataError(
            f"the trained model lacks weights that its classifier needs: {', '.join(lost[:5])}"
        )
    return model


def longest_input(directory: Path) -> int:
    """Positions of a text that the model takes, its special tokens included."""
    config = AutoConfig.from_pretrained(directory)
    positions = int(config.max_position_embeddings)
    offset = config.pad_token_id + 1 if config.model_type == "roberta" else 0
    return positions - offset
