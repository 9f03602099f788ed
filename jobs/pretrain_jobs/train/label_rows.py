"""Logits only where there is a label.

The head's product with the vocabulary is most of a small model's work, and masked modelling needs
it at one position in seven. A hook in front of the output embedding keeps the wanted rows; the
loss and its gradients are those of the full product.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from pretrain_jobs.errors import UserError
from pretrain_jobs.objectives.batch import IGNORED


class LabelRows:
    """Chooses rows in front of a model's output embedding, for one forward call at a time."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Hook into the model; UserError when it has no output embedding."""
        head: nn.Module | None = model.get_output_embeddings()  # type: ignore[no-untyped-call]
        if head is None:
            raise UserError(f"a {model.config.model_type} has no language-model head to train")
        self._rows: Tensor | None = None
        head.register_forward_pre_hook(self._select)

    def choose(self, labels: Tensor) -> Tensor:
        """Note where labels int64 [B, L] are; return them alone, int64 [N].

        The next forward call then has logits [N, V] in the order of the labels.
        """
        flat = labels.flatten()
        self._rows = (flat != IGNORED).nonzero().flatten()
        return flat[self._rows]

    def _select(self, _head: nn.Module, inputs: tuple[Any, ...]) -> tuple[Tensor, ...] | None:
        if self._rows is None:
            return None
        hidden: Tensor = inputs[0]
        rows, self._rows = self._rows, None
        return (torch.index_select(hidden.flatten(0, -2), 0, rows),)
