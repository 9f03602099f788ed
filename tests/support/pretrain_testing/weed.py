"""Where the tests' own build of SeaweedFS lies; `tests/tools/build_weed.py` makes it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

MODULE = Path(__file__).resolve().parents[2] / "tools" / "weed"
"""The Go module that pins SeaweedFS."""


def binary_path() -> Path:
    """The binary for the module as it is now: a changed go.mod or go.sum has another one."""
    digest = hashlib.sha256()
    for name in ("go.mod", "go.sum"):
        digest.update((MODULE / name).read_bytes())
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "pretrain-operator-bed" / "bin" / f"weed-{digest.hexdigest()[:12]}"
