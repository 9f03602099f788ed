"""Steps that went wrong: when one is skipped, and when there have been too many.

Pure: it judges numbers that all ranks share, so that every rank comes to the same verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pretrain_api.spec.training import AnomaliesSpec

from pretrain_jobs.errors import NonFiniteError


@dataclass(frozen=True)
class AnomalyState:
    """What is remembered from step to step, and stored in checkpoints.

    `losses` are the finite losses of the last steps, at most a window of them.
    """

    skipped: int = 0
    non_finite: int = 0
    consecutive_non_finite: int = 0
    spikes: int = 0
    losses: tuple[float, ...] = ()


def is_spike(loss: float, losses: Sequence[float], spec: AnomaliesSpec) -> bool:
    """Whether a loss lies above the mean of a full window by the given standard deviations."""
    if len(losses) < spec.spike_window or not math.isfinite(loss):
        return False
    mean = sum(losses) / len(losses)
    if loss <= mean:
        return False
    variance = sum((past - mean) * (past - mean) for past in losses) / len(losses)
    return loss > mean + spec.spike_sigma * math.sqrt(variance)


def must_skip(loss: float, state: AnomalyState, spec: AnomaliesSpec) -> bool:
    """Whether a step with this loss must not be applied, before its gradient is known."""
    if not math.isfinite(loss):
        return True
    return spec.spike == "skip" and is_spike(loss, state.losses, spec)


def after_step(
    state: AnomalyState, *, loss: float, applied: bool, rescaled: bool, spec: AnomaliesSpec
) -> AnomalyState:
    """The state after a step: counts, the run of non-finite steps, and the window of losses.

    A step that was not applied had a non-finite gradient, unless it was skipped as a spike or
    `rescaled` tells that a loss scale of fp16 was too large and is lowered.
    """
    spike = is_spike(loss, state.losses, spec)
    expected = applied or rescaled or (spike and spec.spike == "skip")
    finite = math.isfinite(loss) and expected
    return replace(
        state,
        skipped=state.skipped + (not applied),
        non_finite=state.non_finite + (not finite),
        consecutive_non_finite=0 if finite else state.consecutive_non_finite + 1,
        spikes=state.spikes + spike,
        losses=(*state.losses, loss)[-spec.spike_window :] if finite else state.losses,
    )


def require_finite(state: AnomalyState, spec: AnomaliesSpec, *, step: int) -> None:
    """NonFiniteError after too many non-finite steps in a row."""
    limit = 1 if spec.non_finite == "fail" else spec.max_consecutive_non_finite
    if state.consecutive_non_finite < limit:
        return
    raise NonFiniteError(
        f"loss or gradient was not finite in {state.consecutive_non_finite} steps in a row, the "
        f"last of them step {step} (spec.training.anomalies allows {limit - 1}). Lower "
        "spec.training.optimizer.learningRate, warm up longer, clip gradients, or use bf16"
    )
