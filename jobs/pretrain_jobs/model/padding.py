"""The padded vocabulary: rows that make matrix sizes even, and that no token ever uses.

A model has `padded_size` rows in its embedding and head. While it trains, the rows beyond the
tokenizer's length are hidden from the loss; the finished model is cut to the true length, so that
nothing outside needs to know of them.
"""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PreTrainedModel


def padded_size(length: int, multiple: int) -> int:
    """The smallest multiple of `multiple` that is at least `length`."""
    return -(-length // multiple) * multiple


def hide_padding(logits: Tensor, vocab_size: int) -> Tensor:
    """Logits [..., rows] with columns from `vocab_size` on at their type's minimum, in place.

    Those columns get no probability and pass no gradient; a view would cost a copy in the loss.
    """
    if logits.shape[-1] > vocab_size:
        logits[..., vocab_size:] = torch.finfo(logits.dtype).min
    return logits


def resize_vocabulary(model: PreTrainedModel, rows: int) -> PreTrainedModel:
    """Give embedding, head and `config.vocab_size` so many rows, in place; tied stay tied.

    The finished model is cut to the tokenizer's length by this. New rows are drawn as fresh ones.
    """
    model.resize_token_embeddings(rows, mean_resizing=False)
    return model
