"""Moments and shares as `describe` writes them; pure."""

from __future__ import annotations

from datetime import datetime

from pretrainctl.local.figures import duration

BAR_WIDTH = 20
DAY_SECONDS = 86_400


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, `3d04h` for what is older than a day; empty when unknown."""
    if since is None:
        return ""
    seconds = max(0.0, (now - since).total_seconds())
    if seconds < DAY_SECONDS:
        return duration(seconds)
    return f"{seconds // DAY_SECONDS:.0f}d{seconds % DAY_SECONDS // 3600:02.0f}h"


def bar(share: float) -> str:
    """`[#####---------------]  25%`."""
    filled = int(min(1.0, max(0.0, share)) * BAR_WIDTH)
    return f"[{'#' * filled}{'-' * (BAR_WIDTH - filled)}] {min(share, 1.0):4.0%}"


def moment(at: datetime) -> str:
    """`2026-01-01 12:00:00Z`."""
    return f"{at:%Y-%m-%d %H:%M:%SZ}"
