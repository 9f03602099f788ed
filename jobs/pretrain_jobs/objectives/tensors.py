"""The last step before a model: a batch becomes the keyword arguments of its forward call.

Which arguments keep documents apart exactly differs by architecture:

- BERT, RoBERTa: a boolean mask [B, 1, L, L] with `sdpa`, and position ids; RoBERTa counts
  positions from its padding id + 1.
- ModernBERT: a mask for each kind of layer, the sliding one cut to its window, for a single
  [B, 1, L, L] mask would replace the window; and position ids for the rotary embedding.
- GPT-2, Qwen2: position ids, no cache and no mask; the restarts tell the documents apart.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers import PretrainedConfig

from pretrain_jobs.errors import UserError
from pretrain_jobs.objectives.batch import Batch

CAUSAL = frozenset({"gpt2", "qwen2"})
"""Model types that predict the next token."""

_ISOLATING = CAUSAL | {"bert", "roberta", "modernbert"}


def label_tensor(batch: Batch, device: torch.device) -> Tensor:
    """Labels int64 [B, L], aligned with the logits."""
    return torch.from_numpy(batch.labels).to(device)


def model_inputs(batch: Batch, config: PretrainedConfig, device: torch.device) -> dict[str, Any]:
    """Keyword arguments for the model's forward call; labels are never among them."""
    inputs: dict[str, Any] = {"input_ids": torch.from_numpy(batch.input_ids).to(device)}
    if batch.isolated:
        return inputs | _isolation(batch, config, device)
    if config.model_type in CAUSAL:
        return inputs | {"use_cache": False}
    if (batch.document_ids < 0).any():
        inputs["attention_mask"] = torch.from_numpy(batch.document_ids >= 0).to(device).long()
    return inputs


def check_isolation(config: PretrainedConfig) -> None:
    """UserError unless documents can be kept apart with this architecture and attention."""
    if config.model_type not in _ISOLATING:
        raise UserError(
            f"Documents cannot be isolated for the architecture {config.model_type}; set"
            " spec.preprocess.packing.isolateDocuments to false, or use one of"
            f" {', '.join(sorted(_ISOLATING))}."
        )
    attention = config._attn_implementation  # noqa: SLF001
    if config.model_type not in CAUSAL and attention != "sdpa":
        raise UserError(
            f"spec.model.attention is {attention}, with which packed documents of a"
            f" {config.model_type} would see each other; set it to sdpa."
        )


def _isolation(batch: Batch, config: PretrainedConfig, device: torch.device) -> dict[str, Any]:
    check_isolation(config)
    positions = torch.from_numpy(batch.position_ids).to(device)
    if config.model_type in CAUSAL:
        return {"position_ids": positions, "use_cache": False}
    document = torch.from_numpy(batch.document_ids).to(device)
    mask = (document[:, :, None] == document[:, None, :])[:, None]
    if config.model_type == "modernbert":
        return {"position_ids": positions, "attention_mask": _windowed(mask, config)}
    if config.model_type == "roberta":
        positions = positions + config.pad_token_id + 1
    return {"position_ids": positions, "attention_mask": mask}


def _windowed(mask: Tensor, config: PretrainedConfig) -> dict[str, Tensor]:
    """The mask of each kind of layer; a sliding one sees `local_attention // 2` to each side."""
    place = torch.arange(mask.shape[-1], device=mask.device)
    near = (place[:, None] - place[None, :]).abs() <= config.local_attention // 2
    return {"full_attention": mask, "sliding_attention": mask & near}
