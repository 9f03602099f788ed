"""Speed: tokens a second, and the share of the device's peak (model FLOPs utilisation)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from pretrain_jobs.train.state import TokenCounts

PEAK_OPERATIONS: tuple[tuple[str, float], ...] = (
    ("H200", 989e12),
    ("H100 PCIe", 756e12),
    ("H100", 989e12),
    ("A100", 312e12),
    ("L40S", 362e12),
    ("L4", 121e12),
    ("V100", 125e12),
    ("T4", 65e12),
)
"""Dense 16-bit operations a second by a part of the device's name, from NVIDIA's data sheets."""


def peak_operations(
    device_name: str, precision: Literal["auto", "fp32", "bf16", "fp16"]
) -> float | None:
    """The device's peak in operations a second; None where no figure would be meaningful."""
    if precision not in ("bf16", "fp16"):
        return None
    return next((peak for part, peak in PEAK_OPERATIONS if part in device_name), None)


@dataclass(frozen=True)
class Work:
    """Work of all ranks together: steps, tokens, operations, and the seconds that it took."""

    steps: int = 0
    tokens: TokenCounts = field(default_factory=TokenCounts)
    operations: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Work) -> Work:
        return Work(
            self.steps + other.steps,
            self.tokens + other.tokens,
            self.operations + other.operations,
            self.seconds + other.seconds,
        )

    @property
    def tokens_per_second(self) -> dict[str, float]:
        """Tokens a second by kind; empty before any work."""
        if not self.seconds:
            return {}
        return {kind: count / self.seconds for kind, count in vars(self.tokens).items()}

    def utilisation(self, *, peak: float | None, world_size: int) -> float | None:
        """Model FLOPs utilisation from 0 to 1, None if the device's peak is not known."""
        if not peak or not self.seconds:
            return None
        return self.operations / self.seconds / (peak * world_size)
