"""What another tool finds in an export's files, read without transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pretrain_jobs.export.weights import save_weights, stored_tensors
from pretrain_testing.tiny_models import write_model

OUTPUT = {"gpt2": "lm_head.weight", "qwen2": "lm_head.weight"}
EMBEDDING = {"gpt2": "transformer.wte.weight", "qwen2": "model.embed_tokens.weight"}


def exported(root: Path, architecture: str, **overrides: Any) -> tuple[dict[str, Any], set[str]]:
    """The configuration, and the names of all stored tensors."""
    source = write_model(root / "model", architecture, **overrides)
    save_weights(source, root / "export", torch.float32, max_shard_bytes=0)
    config: dict[str, Any] = json.loads((root / "export" / "config.json").read_bytes())
    return config, {name for name, _ in stored_tensors(root / "export")}


@pytest.mark.parametrize("architecture", ["gpt2", "qwen2"])
def test_the_configuration_says_that_the_output_is_the_embedding(
    tmp_path: Path, architecture: str
) -> None:
    config, names = exported(tmp_path, architecture, tie_word_embeddings=True)

    assert config["tie_word_embeddings"] is True
    assert EMBEDDING[architecture] in names
    assert OUTPUT[architecture] not in names


def test_the_configuration_says_when_the_output_has_weights_of_its_own(tmp_path: Path) -> None:
    config, names = exported(tmp_path, "qwen2", tie_word_embeddings=False)

    assert config["tie_word_embeddings"] is False
    assert {EMBEDDING["qwen2"], OUTPUT["qwen2"]} <= names


def test_the_configuration_has_the_size_that_the_tensors_have(tmp_path: Path) -> None:
    config, _ = exported(tmp_path, "gpt2")

    shapes = {name: tuple(value.shape) for name, value in stored_tensors(tmp_path / "export")}
    assert shapes[EMBEDDING["gpt2"]][0] == config["vocab_size"]
    assert {str(v.dtype) for _, v in stored_tensors(tmp_path / "export")} == {"torch.float32"}
    assert config["dtype"] == "float32"
