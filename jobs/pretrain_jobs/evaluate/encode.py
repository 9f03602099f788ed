"""Examples as token ids and padded batches, in an order that follows from the seed.

Batches hold texts of like length, so that little is padded.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pretrain_jobs.errors import DataError
from pretrain_jobs.tokenizer.load import load_tokenizer
from pretrain_jobs.tokenizer.special import load_special_tokens

WINDOW_BATCHES = 16
"""Batches within which texts are sorted by length; the windows are drawn at random."""

Encoded = tuple[NDArray[np.int64], ...]
"""Token ids of each example, special tokens included, cut to the greatest length."""


def encode_texts(texts: Sequence[str], tokenizer: Path, *, max_length: int) -> Encoded:
    """Encode with the tokenizer's own special tokens around a text; none is left empty."""
    loaded = load_tokenizer(tokenizer)
    loaded.enable_truncation(max_length=max_length)
    filler = padding_id(tokenizer)
    encodings = loaded.encode_batch(list(texts), add_special_tokens=True)
    return tuple(np.array(encoding.ids or [filler], dtype=np.int64) for encoding in encodings)


def padding_id(tokenizer: Path) -> int:
    """The id that fills rows: padding, else the end of text. DataError when there is neither."""
    tokens = load_special_tokens(tokenizer)
    filler = tokens.pad if tokens.pad is not None else tokens.eos
    if filler is None:
        raise DataError("the model's tokenizer has neither a pad nor an eos token to pad with")
    return filler


def epoch_batches(
    lengths: NDArray[np.int64], batch_size: int, *, seed: int, epoch: int
) -> list[NDArray[np.int64]]:
    """Batches of one epoch as indices into `lengths`: each example once, the last may be short."""
    generator = np.random.default_rng([seed, 1, epoch])
    order = generator.permutation(len(lengths))
    window = batch_size * WINDOW_BATCHES
    batches: list[NDArray[np.int64]] = []
    for begin in range(0, len(order), window):
        part = order[begin : begin + window]
        ranked = part[np.argsort(lengths[part], kind="stable")]
        batches += [ranked[i : i + batch_size] for i in range(0, len(ranked), batch_size)]
    return [batches[i] for i in generator.permutation(len(batches))]


def pad(rows: Sequence[NDArray[np.int64]], filler: int) -> tuple[NDArray[np.int64], ...]:
    """Ids and attention mask, int64 [B, longest row] each, padded at the right."""
    width = max(len(row) for row in rows)
    ids = np.full((len(rows), width), filler, dtype=np.int64)
    mask = np.zeros((len(rows), width), dtype=np.int64)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    return ids, mask
