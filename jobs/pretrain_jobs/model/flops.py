"""Floating-point operations of training, for model FLOPs utilisation (MFU).

Forward and backward of a step cost 3 * (2 * N * T + sum over layers of 4 * d * sum(L^2) * c)
operations: N weights in matrix products (the head included, the embedding not), T real tokens,
d the width of attention, L the lengths of what attends to itself, c 1/2 for causal attention and
1 otherwise (Kaplan et al., arXiv:2001.08361, appendix of PaLM, arXiv:2204.02311). Recomputation
under activation checkpointing does not count, nor does padding.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from pretrain_jobs.objectives.tensors import CAUSAL


@dataclass(frozen=True)
class FlopsModel:
    """What the formula needs of a model; `attention_width` is d summed over the layers."""

    matmul_parameters: int
    attention_width: int
    causal: bool

    def step(self, *, real_tokens: int, squared_lengths: int) -> float:
        """Operations of forward and backward; `squared_lengths` is the sum of L^2."""
        share = 0.5 if self.causal else 1.0
        attention = 4.0 * self.attention_width * squared_lengths * share
        return 3.0 * (2.0 * self.matmul_parameters * real_tokens + attention)


def flops_model(model: PreTrainedModel) -> FlopsModel:
    """Count a model's weights in matrix products; call it before an engine wraps the model.

    Sliding-window layers count as full ones, so their share is an upper bound.
    """
    config = model.config
    head_width = getattr(config, "head_dim", None)
    head_width = head_width or config.hidden_size // config.num_attention_heads
    return FlopsModel(
        matmul_parameters=sum(
            getattr(module.weight, "ds_numel", module.weight.numel())
            for module in model.modules()
            if isinstance(module, nn.Linear | Conv1D)
        ),
        attention_width=config.num_hidden_layers * config.num_attention_heads * head_width,
        causal=config.model_type in CAUSAL,
    )
