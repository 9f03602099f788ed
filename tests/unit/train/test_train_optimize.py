"""One step: the loss is divided once, by the loss tokens of all ranks and micro-batches."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.objectives.batch import IGNORED, Batch
from pretrain_jobs.train.data import Step
from pretrain_jobs.train.engine import BatchLoss, Update
from pretrain_jobs.train.optimize import StepOutcome, Wishes, optimize
from pretrain_jobs.train.pace import Pace

CURSOR = Cursor("dataset", seed=1, samples_per_epoch=10)


class Alone:
    """A group of one rank."""

    def sum(self, values: Sequence[float]) -> list[float]:
        return list(values)


class OneParameter:
    """An engine whose loss is two for each label, times its only parameter, which is one."""

    def __init__(self) -> None:
        self.parameter = torch.ones((), requires_grad=True)

    def forward(self, batch: Batch) -> BatchLoss:
        return BatchLoss(2.0 * batch.loss_tokens * self.parameter, 0)

    def backward(self, loss: BatchLoss, *, weight: float) -> None:
        (loss.total * weight).backward()

    def accumulate(self) -> None:
        pass

    def step(self, learning_rate: float) -> Update:
        assert learning_rate
        assert self.parameter.grad is not None
        norm = float(self.parameter.grad)
        return Update(norm, applied=math.isfinite(norm))


def batch_with(labels: int) -> Batch:
    """One row of eight tokens, of which so many are predicted."""
    row = np.full((1, 8), 7)
    return Batch(
        input_ids=row,
        labels=np.where(np.arange(8)[None] < labels, row, IGNORED),
        position_ids=np.arange(8)[None],
        document_ids=np.zeros((1, 8), np.int64),
        sample_ids=np.zeros(1, np.int64),
        unfilled=np.zeros(1, np.int64),
    )


def outcome_of(*labels: int, pace: Pace | None = None) -> StepOutcome:
    step = Step(
        tuple(batch_with(count) for count in labels), CURSOR, np.zeros(1, int), np.zeros(1, int)
    )
    engine: Any = OneParameter()
    ranks: Any = Alone()
    return optimize(
        engine,
        ranks,
        step,
        learning_rate=1e-3,
        must_skip=lambda loss: not math.isfinite(loss),
        wishes=Wishes,
        before_update=lambda: None,
        pace=pace or Pace(0, 1, time.monotonic),
    )


@pytest.mark.parametrize("labels", [(3,), (1, 5), (0, 2), (4, 0, 1)])
def test_loss_and_gradient_are_means_over_all_labels_however_they_are_spread(
    labels: tuple[int, ...],
) -> None:
    outcome = outcome_of(*labels)

    assert outcome.loss == pytest.approx(2.0)
    assert outcome.update.gradient_norm == pytest.approx(2.0)
    assert outcome.tokens.loss == sum(labels)


@pytest.mark.parametrize("labels", [(0,), (0, 0)])
def test_a_step_in_which_nothing_is_predicted_weighs_nothing(labels: tuple[int, ...]) -> None:
    outcome = outcome_of(*labels)

    assert outcome.update == Update(0.0, applied=True)
    assert (outcome.loss, outcome.tokens.loss, outcome.tokens.real) == (0.0, 0, 8 * len(labels))


@pytest.mark.parametrize("labels", [(3,), (4, 0, 1)])
def test_a_rank_tells_its_pace_beside_what_the_step_reduces_anyway(labels: tuple[int, ...]) -> None:
    readings = iter([10.0, 12.5])
    pace = Pace(1, 3, lambda: next(readings), due=True)

    outcome = outcome_of(*labels, pace=pace)

    assert outcome.shares == (0.0, 0.0, 0.0, 2.5, 0.0, 0.0)
    assert outcome.wishes == Wishes()
    assert outcome.loss == pytest.approx(2.0)
