"""Random numbers that are a function of their keys alone (counter-based generation).

A number depends on nothing but what it is keyed by, such as (seed, epoch, sample id, position):
not on the batch, the worker, earlier draws or a library's version. Everything is vectorised over
arrays of keys, which a generator object per sample would not be.

The generator is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
generators", OOPSLA 2014): output n of the stream with state k is `mix(k + (n + 1) * GOLDEN)`,
where `mix` is the finaliser with Stafford's constants (variant 13). States are folded from their
parts by the same finaliser. It is not for cryptography.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def fold(*parts: int | NDArray[np.int64] | Keys) -> Keys:
    """Keys uint64 [n] from parts that are integers or arrays [n]; their order matters."""
    state = np.zeros(1, np.uint64)
    for part in parts:
        state = _mix(state + GOLDEN + np.atleast_1d(np.asarray(part)).astype(np.uint64))
    return state


def draw(keys: Keys, counters: NDArray[np.int64]) -> Keys:
    """Uniform 64-bit numbers uint64 [n]: output `counters` of the streams `keys` (broadcast)."""
    return _mix(keys + (counters.astype(np.uint64) + np.uint64(1)) * GOLDEN)


def permutation(key: Keys, size: int) -> NDArray[np.int64]:
    """A permutation int64 [size] of 0..size-1 that the key (uint64 [1]) decides."""
    return np.argsort(draw(key, np.arange(size)), kind="stable")


def _mix(values: Keys) -> Keys:
    """SplitMix64's finaliser, in place; `values` must be the caller's own array."""
    values ^= values >> np.uint64(30)
    values *= _FIRST
    values ^= values >> np.uint64(27)
    values *= _SECOND
    values ^= values >> np.uint64(31)
    return values
