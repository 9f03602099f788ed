"""Checks of an exported directory against the trained model, by value.

A loading report can be clean while weights are random, so tensors and logits are compared. Every
function raises DataError with what differs; none changes anything.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoTokenizer

from pretrain_jobs.errors import DataError
from pretrain_jobs.export.weights import load_model, parameter_hashes, stored_tensors
from pretrain_jobs.tokenizer.load import load_tokenizer

INDEX_FILE = "model.safetensors.index.json"
PROBE_LENGTH = 32
PROBE_STRIDE = 7919
"""A prime, so that the probe's ids are spread over the vocabulary."""

PROBE_TEXT = "今天 The old clock, 3.14 km — 𠮷野家。\n"


def check_export(directory: Path, reference: Any, *, dtype: torch.dtype) -> None:
    """Run every check of this module; `reference` is the trained model, rounded to `dtype`."""
    check_files(directory, reference, dtype=dtype)
    reloaded = load_model(directory)
    check_parameters(reference, reloaded)
    check_ties(reference, reloaded)
    check_logits(reference, reloaded)
    check_tokenizer(directory, reloaded)


def check_files(directory: Path, reference: Any, *, dtype: torch.dtype) -> None:
    """Each weight lies in one file, once, in its type, and is the reference's; none lacks.

    A reader without transformers meets exactly this.
    """
    expected = reference.state_dict()
    stored: dict[str, Tensor] = {}
    for name, tensor in stored_tensors(directory):
        if name in stored:
            raise DataError(f"the export holds {name} twice")
        if tensor.dtype != dtype or name not in expected:
            raise DataError(f"the export holds {name} as {tensor.dtype}, which is not expected")
        if not torch.equal(tensor.to(torch.float32), expected[name]):
            raise DataError(f"the export's {name} differs from the trained model's")
        stored[name] = tensor
    _check_complete(stored, reference)
    _check_index(directory, set(stored))
    _check_size(directory, reference, dtype)


def _check_complete(stored: dict[str, Tensor], reference: Any) -> None:
    """Each storage of the reference is there under exactly one of its names."""
    by_storage: dict[int, list[str]] = {}
    for name, value in reference.state_dict().items():
        by_storage.setdefault(value.data_ptr(), []).append(name)
    for names in by_storage.values():
        count = len(stored.keys() & set(names))
        if count != 1:
            raise DataError(
                f"the export holds {' = '.join(names)} {count} times; shared weights are written "
                "once"
            )


def _check_index(directory: Path, stored: set[str]) -> None:
    path = directory / INDEX_FILE
    if not path.is_file():
        return
    listed = set(json.loads(path.read_text())["weight_map"])
    if listed != stored:
        differing = ", ".join(sorted(listed ^ stored)[:5])
        raise DataError(f"{INDEX_FILE} and the files differ in {differing}")


def _check_size(directory: Path, reference: Any, dtype: torch.dtype) -> None:
    size = sum(path.stat().st_size for path in directory.glob("*.safetensors"))
    parameters = sum(parameter.numel() for parameter in reference.parameters())
    if size < parameters * dtype.itemsize:
        raise DataError(
            f"the export's weights have {size} bytes, fewer than {parameters} parameters of "
            f"{dtype.itemsize} bytes need"
        )


def check_parameters(reference: Any, reloaded: Any) -> None:
    """Every parameter has the same hash in both models."""
    first, second = parameter_hashes(reference), parameter_hashes(reloaded)
    differing = sorted(name for name in first | second if first.get(name) != second.get(name))
    if differing:
        raise DataError(
            f"reloaded weights differ from the trained ones: {', '.join(differing[:5])}"
        )


def check_ties(reference: Any, reloaded: Any) -> None:
    """Input and output embeddings are one storage in the reloaded model if they were before."""
    was, is_now = (_is_tied(model) for model in (reference, reloaded))
    if was != is_now:
        raise DataError(
            f"the output matrix is {'' if is_now else 'not '}tied to the embedding after reload, "
            f"and was {'' if was else 'not '}before"
        )


def _is_tied(model: Any) -> bool:
    output = model.get_output_embeddings()
    if output is None:
        return False
    embedding = model.get_input_embeddings()
    return bool(output.weight.data_ptr() == embedding.weight.data_ptr())


def check_logits(reference: Any, reloaded: Any) -> None:
    """Both models give the same logits, bit for bit, on a fixed input."""
    first, second = (probe_logits(model) for model in (reference, reloaded))
    if not torch.equal(first, second):
        difference = (first - second).abs().max().item()
        raise DataError(f"the reloaded model's logits differ by up to {difference:.3g}")


def probe_logits(model: Any) -> Tensor:
    """Logits [1, L, V] in fp32 for ids that follow from the vocabulary's size alone."""
    length = min(PROBE_LENGTH, int(model.config.max_position_embeddings) // 2)
    ids = torch.arange(1, length + 1).mul(PROBE_STRIDE).remainder(model.config.vocab_size)
    with torch.inference_mode():
        logits: Tensor = model(
            input_ids=ids[None], attention_mask=torch.ones(1, length, dtype=torch.long)
        ).logits
    return logits


def check_tokenizer(directory: Path, model: Any) -> None:
    """AutoTokenizer loads, has no more tokens than the model rows, and gives the trained ids."""
    tokenizer = AutoTokenizer.from_pretrained(directory)
    rows = int(model.get_input_embeddings().weight.shape[0])
    if len(tokenizer) > rows or rows != model.config.vocab_size:
        raise DataError(
            f"the tokenizer has {len(tokenizer)} tokens, the embedding {rows} rows and the "
            f"configuration a vocabulary of {model.config.vocab_size}: ids would be out of range"
        )
    ours = load_tokenizer(directory).encode(PROBE_TEXT, add_special_tokens=False).ids
    theirs = tokenizer(PROBE_TEXT, add_special_tokens=False)["input_ids"]
    if ours != theirs:
        raise DataError(
            f"{type(tokenizer).__name__} of transformers tokenizes otherwise than tokenizer.json, "
            "on which the model was trained: set tokenizer_class to PreTrainedTokenizerFast in the "
            "tokenizer's tokenizer_config.json and train again"
        )
