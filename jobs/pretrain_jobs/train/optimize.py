"""One optimizer step: forward and backward of every micro-batch, then the update.

Nothing is logged, counted or saved here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from pretrain_jobs.train.data import Step
from pretrain_jobs.train.engine import Engine, Update
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.state import TokenCounts


@dataclass(frozen=True)
class Wishes:
    """What a rank wants to happen after this step, or whether any rank does."""

    stop: bool = False
    save: bool = False


@dataclass(frozen=True)
class StepOutcome:
    """Of one step over all ranks: tokens, sum of squared span lengths, mean loss, update."""

    tokens: TokenCounts
    squared_lengths: int
    loss: float
    update: Update
    wishes: Wishes


def optimize(
    engine: Engine,
    ranks: Ranks,
    step: Step,
    *,
    learning_rate: float,
    must_skip: Callable[[float], bool],
    wishes: Callable[[], Wishes],
) -> StepOutcome:
    """Train on one global batch. A collective.

    Each micro-batch's summed loss is weighted by one over the loss tokens of the whole step, so
    that accumulation and ranks divide out once. The last backward pass waits for the step's mean
    loss; if `must_skip` says so it spoils the gradient, and every rank's update refuses it.
    """
    tokens, squared_lengths = _count(ranks, step)
    weight = 1.0 / tokens.loss
    total = 0.0
    for batch in step.batches[:-1]:
        loss = engine.forward(batch)
        total += loss.value
        engine.backward(loss, weight=weight)
        engine.accumulate()
    loss = engine.forward(step.batches[-1])
    own = wishes()
    summed, stops, saves = ranks.sum([total + loss.value, float(own.stop), float(own.save)])
    mean = summed * weight
    engine.backward(loss, weight=math.nan if must_skip(mean) else weight)
    return StepOutcome(
        tokens=tokens,
        squared_lengths=squared_lengths,
        loss=mean,
        update=engine.step(learning_rate),
        wishes=Wishes(stop=stops > 0, save=saves > 0),
    )


def _count(ranks: Ranks, step: Step) -> tuple[TokenCounts, int]:
    """Counts over the accumulated batch of all ranks."""
    own = [
        (batch.positions, batch.real_tokens, batch.loss_tokens, batch.squared_lengths)
        for batch in step.batches
    ]
    sums = ranks.sum([float(sum(parts)) for parts in zip(*own, strict=True)])
    positions, real, loss, squares = (int(value) for value in sums)
    return TokenCounts(positions, real, loss), squares
