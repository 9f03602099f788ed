"""Whether the numbers of a snapshot are finite, from their bits; without torch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pretrain_jobs.checkpoint.archive import Extent, blocks

_EXPONENTS: dict[str, np.unsignedinteger[Any]] = {
    "float16": np.uint16(0x7C00),
    "bfloat16": np.uint16(0x7F80),
    "float32": np.uint32(0x7F800000),
    "float64": np.uint64(0x7FF0000000000000),
}
"""The exponent's bits by type; they are all set in infinities and NaNs alone (IEEE 754, 3.4)."""


@dataclass(frozen=True)
class FloatExtent:
    """Floating-point numbers in memory, whose type is one of torch's names."""

    dtype: str
    extent: Extent


def all_finite(memory: memoryview, floats: Iterable[FloatExtent]) -> bool:
    """Whether every number is neither infinite nor NaN."""
    return all(
        _is_finite(block, _EXPONENTS[numbers.dtype])
        for numbers in floats
        for block in blocks(memory, numbers.extent)
    )


def _is_finite(block: memoryview, exponent: np.unsignedinteger[Any]) -> bool:
    bits = np.frombuffer(block, exponent.dtype)
    return not bool(((bits & exponent) == exponent).any())
