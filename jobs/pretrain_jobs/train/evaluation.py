"""Evaluation while training: the same batches of the validation split each time.

Sums and counts are reduced over the ranks and divided once; a rank's mean never enters a mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.train.engine import Engine
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.stopping import StopRequest


@dataclass(frozen=True)
class EvaluationResult:
    """Loss per predicted token in nats, its exponential, and the share predicted right.

    `tokens` are the predicted ones.
    """

    loss: float
    perplexity: float
    accuracy: float
    tokens: int
    samples: int


@dataclass(frozen=True)
class Evaluation:
    """What came of an evaluation; a result may be lacking because there is no validation text."""

    result: EvaluationResult | None
    stopped: bool = False


def summarise(
    *, loss: float, correct: float, tokens: float, samples: float
) -> EvaluationResult | None:
    """The result of sums over all ranks; None without a single prediction."""
    if not tokens:
        return None
    mean = loss / tokens
    return EvaluationResult(
        loss=mean,
        perplexity=math.exp(mean) if mean < 700.0 else math.inf,
        accuracy=correct / tokens,
        tokens=int(tokens),
        samples=int(samples),
    )


def evaluate(
    engine: Engine, batches: Iterable[Batch], ranks: Ranks, stop: StopRequest
) -> Evaluation:
    """Run the batches, as many on every rank. A collective.

    If a rank is asked to stop, all leave after the same batch, without a result.
    """
    sums = [0.0, 0.0, 0.0, 0.0]
    with engine.inference():
        for batch in batches:
            own = _sums(engine, batch)
            *reduced, stops = ranks.sum([*own, float(stop.requested)])
            sums = [total + part for total, part in zip(sums, reduced, strict=True)]
            if stops:
                return Evaluation(None, stopped=True)
    loss, correct, tokens, samples = sums
    return Evaluation(summarise(loss=loss, correct=correct, tokens=tokens, samples=samples))


def _sums(engine: Engine, batch: Batch) -> list[float]:
    """Loss, right predictions, predictions and samples of one rank's batch."""
    loss = engine.forward(batch, count_correct=True)
    samples = int((batch.sample_ids >= 0).sum())
    return [loss.value, float(loss.correct), float(batch.loss_tokens), float(samples)]
