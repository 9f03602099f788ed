"""Where the bed keeps things: its cache outside the checkout, its state inside."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The checkout."""

GO_MODULES = Path(__file__).with_name("go")
"""One Go module for each part that is built from source."""


def cache_folder() -> Path:
    """PRETRAIN_BED_CACHE, or one of the user's: binaries and images that outlive checkouts."""
    chosen = os.environ.get("PRETRAIN_BED_CACHE")
    if chosen:
        return Path(chosen)
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches) / "pretrain-operator-bed"
