"""Weights of the trained model on their way into the export: loaded, rounded, saved, hashed.

Nothing is taken on trust of a loading report: see `verify`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM
from transformers.utils import logging as transformers_logging

from pretrain_jobs.errors import DataError
from pretrain_jobs.model.build import is_causal

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def load_model(directory: Path, dtype: torch.dtype = torch.float32) -> Any:
    """The language model of a Hugging Face directory, ready for inference on the CPU.

    DataError when it has weights too few or too many; the message names the first.
    """
    transformers_logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    config = AutoConfig.from_pretrained(directory)
    auto: Any = AutoModelForCausalLM if is_causal(config) else AutoModelForMaskedLM
    model, info = auto.from_pretrained(directory, dtype=dtype, output_loading_info=True)
    for problem in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        if found := sorted(map(str, info[problem])):
            raise DataError(
                f"the model's weights do not fit its configuration: {problem.replace('_', ' ')} "
                f"{', '.join(found[:5])}"
            )
    return model.eval()


def round_weights(model: Any, dtype: torch.dtype) -> None:
    """Round every parameter to a narrower type, in place; the model stays fp32.

    DataError for a weight that the type cannot hold.
    """
    if dtype == torch.float32:
        return
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            rounded = parameter.to(dtype).to(torch.float32)
            if not torch.isfinite(rounded).all():
                raise DataError(
                    f"the weight {name} has values that {dtype} cannot hold: set export.dtype to "
                    "bfloat16 or float32"
                )
            parameter.copy_(rounded)


def save_weights(
    source: Path, directory: Path, dtype: torch.dtype, *, max_shard_bytes: int
) -> None:
    """Write configuration and safetensors of the model in `source`, cast to `dtype`.

    A storage that several parameters share is written once. No limit on a file's size when
    `max_shard_bytes` is 0.
    """
    model = load_model(source, dtype)
    whole = sum(value.numel() * value.element_size() for value in model.state_dict().values())
    model.save_pretrained(directory, max_shard_size=max_shard_bytes or whole + 1)


def parameter_hashes(model: Any) -> dict[str, str]:
    """SHA-256 in hex of the type, shape and bytes of each parameter, a shared one once."""
    return {name: _hash(parameter) for name, parameter in model.named_parameters()}


def stored_tensors(directory: Path) -> Iterator[tuple[str, Tensor]]:
    """Every tensor of the directory's safetensors files, read without transformers."""
    for path in sorted(directory.glob("*.safetensors")):
        with safe_open(path, framework="pt") as file:
            for name in file.keys():  # noqa: SIM118 - it is no mapping
                yield name, file.get_tensor(name)


def _hash(parameter: Tensor) -> str:
    value = parameter.detach().cpu().contiguous()
    digest = hashlib.sha256(f"{value.dtype}{tuple(value.shape)}".encode())
    raw: Any = value.reshape(-1).view(torch.uint8).numpy()
    digest.update(raw)
    return digest.hexdigest()
