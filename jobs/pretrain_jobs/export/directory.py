"""Building the exported directory: weights, tokenizer, and what training told of itself."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import torch

from pretrain_jobs.evaluate.classifier import longest_input
from pretrain_jobs.export.facts import ModelFacts
from pretrain_jobs.export.verify import check_files
from pretrain_jobs.export.weights import load_model, round_weights, save_weights
from pretrain_jobs.model.build import is_causal
from pretrain_jobs.model.parameters import count_parameters
from pretrain_jobs.tokenizer.files import CONFIG_FILE, TOKENIZER_FILES, read_json, write_json
from pretrain_jobs.tokenizer.special import load_special_tokens

DOCUMENTS = ("training.json", "eval_results.json")
"""What training tells of itself: hyperparameters, the whole curve, the last validation."""

_NO_LIMIT = 10**12
"""transformers writes a model_max_length of about 1e30 where none was set."""


def build_directory(source: Path, target: Path, dtype: torch.dtype, *, max_shard_bytes: int) -> Any:
    """Write all but the card; give the trained model, in fp32 but rounded to `dtype`.

    The trained model's own files are compared with what was loaded from them first.
    """
    reference = load_model(source)
    check_files(source, reference, dtype=torch.float32)
    round_weights(reference, dtype)
    save_weights(source, target, dtype, max_shard_bytes=max_shard_bytes)
    copy_tokenizer(source, target)
    for name in DOCUMENTS:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    return reference


def copy_tokenizer(source: Path, target: Path) -> None:
    """Copy the tokenizer's files; its greatest length becomes the model's where it has none."""
    for name in TOKENIZER_FILES:
        if (source / name).is_file():
            shutil.copyfile(source / name, target / name)
    config = read_json(target / CONFIG_FILE)
    if config.get("model_max_length", _NO_LIMIT) >= _NO_LIMIT:
        write_json(target / CONFIG_FILE, config | {"model_max_length": longest_input(source)})


def model_facts(model: Any, directory: Path, dtype: str) -> ModelFacts:
    """Figures of the exported model for its card."""
    embedding, output = model.get_input_embeddings(), model.get_output_embeddings()
    names = {id(value): name for name, value in model.named_parameters()}
    return ModelFacts(
        model_type=str(model.config.model_type),
        masked=not is_causal(model.config),
        parameters=count_parameters(model),
        rows=int(embedding.weight.shape[0]),
        tokens=load_special_tokens(directory).length,
        positions=longest_input(directory),
        dtype=dtype,
        tied=output.weight is embedding.weight,
        output_key=names[id(output.weight)],
    )
