"""Tiny models with random weights, committed as the training stage leaves them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.spec.tokenizer import TokenizerTrainingSpec
from pretrain_jobs.storage import open_store
from pretrain_jobs.storage.artifact import commit, upload_directory
from pretrain_jobs.tokenizer.special import load_special_tokens
from pretrain_jobs.tokenizer.train import train_tokenizer
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

from pretrain_testing.tokenizer_texts import texts

ARCHITECTURES = ("bert", "roberta", "modernbert", "gpt2", "qwen2")
CAUSAL = ("gpt2", "qwen2")
MODEL_FINGERPRINT = "0123456789abcdef"

_SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_positions": 64},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 16},
    "qwen2": {"num_key_value_heads": 1, "tie_word_embeddings": True},
}
_SIZE = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}

TRAINING: dict[str, Any] = {
    "formatVersion": 1,
    "dataset": "d" * 16,
    "training": {"maxSteps": 300, "globalBatchSize": 8, "seed": 42},
    "worldSize": 2,
    "steps": 300,
    "samples": 2400,
    "epochs": 1.5,
    "tokens": {"positions": 40_000, "real": 39_900, "loss": 6_000},
    "skippedSteps": 0,
    "curve": [
        {"step": step, "loss": 6.0 - step / 100, "learningRate": 1e-4}
        for step in range(10, 301, 10)
    ],
    "evaluations": [{"step": 300, "validation": {"loss": 3.25, "accuracy": 0.4}}],
}


def tiny_config(architecture: str, directory: Path, **overrides: Any) -> Any:
    """The configuration of a tiny model for the tokenizer in the directory."""
    tokens = load_special_tokens(directory)
    sizes = (_SIZE if architecture != "gpt2" else {}) | _SIZES.get(architecture, {})
    if architecture == "roberta":
        sizes |= {"max_position_embeddings": 66, "type_vocab_size": 1}
    ids = {
        f"{role}_token_id": getattr(tokens, role) for role in ("pad", "bos", "eos", "cls", "sep")
    }
    if architecture in CAUSAL:
        ids["pad_token_id"] = None
    return AutoConfig.for_model(architecture, vocab_size=tokens.length, **(sizes | ids | overrides))


def write_model(directory: Path, architecture: str, *, seed: int = 0, **overrides: Any) -> Path:
    """A model directory with tokenizer, training.json and eval_results.json."""
    spec = TokenizerTrainingSpec(vocab_size=400, lowercase=False)
    train_tokenizer(texts(), spec, architecture=architecture).save(directory)
    auto: Any = AutoModelForCausalLM if architecture in CAUSAL else AutoModelForMaskedLM
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = auto.from_config(
            tiny_config(architecture, directory, **overrides), dtype=torch.float32
        )
    model.save_pretrained(directory)
    documents = {"training.json": TRAINING, "eval_results.json": {"loss": 3.25, "accuracy": 0.4}}
    for name, content in documents.items():
        (directory / name).write_text(json.dumps(content))
    return directory


def commit_model(storage: StorageSpec, directory: Path) -> str:
    """Commit a model directory under the storage; its URI."""
    uri = f"{storage.uri}/models/{MODEL_FINGERPRINT}"
    store = open_store(storage, uri)
    files = upload_directory(store, directory)
    commit(
        store,
        kind="model",
        fingerprint=MODEL_FINGERPRINT,
        files=files,
        extra={"dataset": TRAINING["dataset"]},
    )
    return uri
