"""One optimizer step: forward and backward of every micro-batch, then the update.

Nothing is logged, counted or saved here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields

from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.train.data import Step
from pretrain_jobs.train.engine import Engine, Update
from pretrain_jobs.train.pace import Pace
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.state import TokenCounts


@dataclass(frozen=True)
class Wishes:
    """What a rank wants to happen after this step, or whether any rank does.

    `busy` and `failed` tell of the save under way: that it has not ended, that it cannot succeed.
    """

    stop: bool = False
    save: bool = False
    busy: bool = False
    failed: bool = False


_WISHES = len(fields(Wishes))


@dataclass(frozen=True)
class StepOutcome:
    """Of one step over all ranks: tokens, sum of squared span lengths, mean loss, update.

    `shares` is what all ranks have told of their pace, if that was due.
    """

    tokens: TokenCounts
    squared_lengths: int
    loss: float
    update: Update
    wishes: Wishes
    shares: tuple[float, ...] = ()


def optimize(
    engine: Engine,
    ranks: Ranks,
    step: Step,
    *,
    learning_rate: float,
    must_skip: Callable[[float], bool],
    wishes: Callable[[], Wishes],
    before_update: Callable[[], None],
    pace: Pace,
) -> StepOutcome:
    """Train on one global batch. A collective.

    Each micro-batch's summed loss is weighted by one over the loss tokens of the whole step, so
    that accumulation and ranks divide out once; a step without any has the loss 0. The last
    backward pass waits for the step's mean loss; if `must_skip` says so it spoils the gradient,
    and every rank's update refuses it. Ranks talk once in a step, or twice where
    micro-batches before the last need the weight. Nothing but gradients changes until
    `before_update` returns. `pace` measures the last forward pass, which waits for no other rank
    before ZeRO stage 3.
    """
    *early, last = step.batches
    counts = _counts(step)
    if early:
        counts = ranks.sum(counts)
    total = sum(_accumulate(engine, batch, weight=_weight(counts)) for batch in early)
    with pace.computing():
        loss = engine.forward(last)
        total += loss.value
    told = [total, *map(float, astuple(wishes())), *pace.share()]
    if early:
        summed, *others = ranks.sum(told)
    else:
        sums = ranks.sum([*counts, *told])
        counts, (summed, *others) = sums[: len(counts)], sums[len(counts) :]
    wishing, shares = others[:_WISHES], others[_WISHES:]
    weight = _weight(counts)
    mean = summed * weight
    engine.backward(loss, weight=math.nan if must_skip(mean) else weight)
    before_update()
    positions, real, labels, squares = (int(count) for count in counts)
    return StepOutcome(
        tokens=TokenCounts(positions, real, labels),
        squared_lengths=squares,
        loss=mean,
        update=engine.step(learning_rate),
        wishes=Wishes(*(ranks_wishing > 0 for ranks_wishing in wishing)),
        shares=tuple(shares),
    )


def _accumulate(engine: Engine, batch: Batch, *, weight: float) -> float:
    """Add a micro-batch's gradient to the step's; its summed loss."""
    loss = engine.forward(batch)
    engine.backward(loss, weight=weight)
    engine.accumulate()
    return loss.value


def _counts(step: Step) -> list[float]:
    """Positions, real tokens, loss tokens and squared lengths of a rank's step."""
    parts = [
        (batch.positions, batch.real_tokens, batch.loss_tokens, batch.squared_lengths)
        for batch in step.batches
    ]
    return [float(sum(values)) for values in zip(*parts, strict=True)]


def _weight(counts: list[float]) -> float:
    """One over the loss tokens; nothing where no sample has any, for nothing is learnt there."""
    return 1.0 / counts[2] if counts[2] else 0.0
