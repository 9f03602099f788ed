"""Ranges of the numbers in `model.config`, told by what a setting's name says that it is.

Only what no model can be made of, or none can learn with, is refused here; whether settings fit
each other is the business of `validation.model`.
"""

from __future__ import annotations

import re

from pretrain_api.presets import Architecture
from pretrain_api.spec.model import ConfigValue

_DROPOUT = re.compile(r"dropout|pdrop")
_FROM_ZERO = frozenset({"pad_token_id", "max_window_layers"})
"""Integers that are no size: a token, and the number of layers below those with a window."""


def range_problem(architecture: Architecture, key: str, value: ConfigValue) -> str:
    """What is wrong with a number of the right type; empty when nothing is, and for other types."""
    if isinstance(value, bool | str):
        return ""
    default = architecture.config[key]
    if isinstance(default, float):
        return _float_problem(key, value)
    if key == architecture.positions:
        return "" if value >= 1 else f"{value} positions leave no room for a token"
    lowest = 0 if key in _FROM_ZERO else min(1, int(default))
    return "" if value >= lowest else f"is {value}; it must be at least {lowest}"


def _float_problem(key: str, value: float) -> str:
    if not _DROPOUT.search(key):
        return "" if value > 0 else f"is {value}; it must be more than 0"
    return "" if 0 <= value < 1 else f"is {value}; a share that is dropped lies from 0 to below 1"
