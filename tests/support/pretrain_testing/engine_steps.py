"""A few optimizer steps of one rank without the loop: for tests of the engine by itself."""

from __future__ import annotations

import hashlib
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pretrain_jobs.model.build import build_config, build_model
from pretrain_jobs.train.corpus import Corpus, open_corpus
from pretrain_jobs.train.data import Share
from pretrain_jobs.train.engine import BatchLoss, Engine, build_engine
from pretrain_jobs.train.evaluation import evaluate
from pretrain_jobs.train.finish import consolidate
from pretrain_jobs.train.optimize import Wishes, optimize
from pretrain_jobs.train.pace import Pace
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.stopping import StopRequest

from pretrain_testing.training import Bed

GLOBAL_BATCH = 8


@dataclass(frozen=True)
class StepFigures:
    """What one step told, the same on every rank."""

    loss: float
    gradient_norm: float
    applied: bool
    weights: str


def run_steps(
    ranks: Ranks,
    root: Path,
    training: dict[str, Any],
    steps: int,
    spoil: tuple[int, int] | None = None,
) -> list[StepFigures]:
    """Train some steps; `spoil` is (rank, step) where the loss becomes NaN on that rank alone."""
    bed = Bed(root, training={**training, "globalBatchSize": GLOBAL_BATCH}, model=NO_DROPOUT)
    with open_corpus(bed.config(), root / f"scratch-{ranks.rank}") as corpus:
        engine, share = _engine(ranks, bed, corpus)
        batches = corpus.train.steps(corpus.train.start(), share)
        figures = []
        for number in range(1, steps + 1):
            if spoil == (ranks.rank, number):
                _spoil_next_loss(engine)
            figures.append(_step(engine, ranks, next(batches)))
        return figures


def validation_loss(ranks: Ranks, root: Path, micro_batch: int, samples: int) -> Any:
    """Evaluate fresh weights on the validation split."""
    training = {"microBatchSize": micro_batch, "globalBatchSize": GLOBAL_BATCH}
    bed = Bed(root, training=training, model=NO_DROPOUT)
    with open_corpus(bed.config(), root / f"scratch-{ranks.rank}") as corpus:
        engine, share = _engine(ranks, bed, corpus)
        batches = corpus.validation.fixed_batches(
            samples,
            rank=ranks.rank,
            world_size=ranks.world_size,
            micro_batch=share.micro_batch,
        )
        return evaluate(engine, batches, ranks, StopRequest()).result


NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def _engine(ranks: Ranks, bed: Bed, corpus: Corpus) -> tuple[Engine, Share]:
    config = bed.config()
    training = config.training
    share = Share(
        rank=ranks.rank,
        world_size=ranks.world_size,
        global_batch=GLOBAL_BATCH,
        micro_batch=training.micro_batch_size or 1,
    )
    model = build_config(config.model, tokens=corpus.tokens, sequence_length=corpus.sequence_length)
    engine = build_engine(
        lambda: build_model(model, seed=training.seed),
        training=training,
        share=share,
        device=torch.device("cpu"),
        vocab_size=corpus.tokens.length,
    )
    return engine, share


def _step(engine: Engine, ranks: Ranks, step: Any) -> StepFigures:
    outcome = optimize(
        engine,
        ranks,
        step,
        learning_rate=1e-2,
        must_skip=lambda loss: not math.isfinite(loss),
        wishes=Wishes,
        before_update=lambda: None,
        pace=Pace(ranks.rank, ranks.world_size, time.monotonic),
    )
    weights = consolidate(engine, rank=0)
    digest = hashlib.sha256()
    for name in sorted(weights):
        digest.update(weights[name].numpy().tobytes())
    return StepFigures(
        loss=outcome.loss,
        gradient_norm=outcome.update.gradient_norm,
        applied=outcome.update.applied,
        weights=digest.hexdigest(),
    )


def _spoil_next_loss(engine: Engine) -> None:
    forward = engine.forward

    def spoiled(batch: Any, **options: bool) -> BatchLoss:
        engine.forward = forward  # type: ignore[method-assign]
        loss = forward(batch, **options)
        return BatchLoss(loss.total * math.nan, loss.correct)

    engine.forward = spoiled  # type: ignore[method-assign]
