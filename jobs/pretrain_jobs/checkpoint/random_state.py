"""The random generators of a rank, as JSON: Python's, NumPy's, torch's and the device's.

Every rank stores and restores its own; DeepSpeed's client state would keep rank 0's alone.
"""

from __future__ import annotations

import base64
import random
from typing import Any

import numpy as np
import torch
from torch import Tensor


def seed_random_state(seed: int, rank: int, *, step: int = 0) -> None:
    """Set all generators to a rank's own streams after step `step`, 0 before the first.

    They depend on seed, rank and step alone, and no two ranks or steps share one.
    """
    own = np.random.SeedSequence([seed, rank, step]).generate_state(3)
    random.seed(int(own[0]))
    np.random.seed(int(own[1]))
    torch.manual_seed(int(own[2]))


def capture_random_state() -> dict[str, Any]:
    """The state of all generators of this process."""
    version, numbers, gauss = random.getstate()
    _, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    return {
        "python": [version, list(numbers), gauss],
        "numpy": [np.asarray(keys).tolist(), int(position), int(has_gauss), float(cached)],
        "torch": _encode(torch.get_rng_state()),
        "cuda": _encode(torch.cuda.get_rng_state()) if torch.cuda.is_available() else None,
    }


def restore_random_state(state: dict[str, Any]) -> None:
    """Set all generators to a captured state."""
    version, numbers, gauss = state["python"]
    random.setstate((version, tuple(numbers), gauss))
    keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state(("MT19937", np.array(keys, np.uint32), position, has_gauss, cached))
    torch.set_rng_state(_decode(state["torch"]))
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(_decode(state["cuda"]))


def _encode(state: Tensor) -> str:
    return base64.b64encode(state.numpy().tobytes()).decode()


def _decode(text: str) -> Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
