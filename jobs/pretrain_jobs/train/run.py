"""What one rank trains with, and the loop over its steps that is put together from it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from pretrain_api.spec.training import TrainingSpec
from pretrain_api.stages import TrainStageConfig

from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.process import ProgressReporter
from pretrain_jobs.telemetry.samples import published
from pretrain_jobs.train.corpus import Corpus
from pretrain_jobs.train.data import Share
from pretrain_jobs.train.engine import Engine
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.ledger import Ledger
from pretrain_jobs.train.loop import Loop
from pretrain_jobs.train.metrics import TrainingMetrics
from pretrain_jobs.train.pace import Pace, Stragglers
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.resume import Resumption
from pretrain_jobs.train.stopping import stop_on_sigterm
from pretrain_jobs.train.telemetry import LOG_DIR_ENV, Telemetry
from pretrain_jobs.train.throughput import peak_operations


@dataclass(frozen=True)
class Run:
    """All that is known before there is an engine; `training` has its number of steps."""

    config: TrainStageConfig
    training: TrainingSpec
    ranks: Ranks
    corpus: Corpus
    scratch: Path
    goodput: Goodput

    @cached_property
    def share(self) -> Share:
        """The part of each global batch that this rank trains on."""
        return Share(
            rank=self.ranks.rank,
            world_size=self.ranks.world_size,
            global_batch=self.training.global_batch_size or 1,
            micro_batch=self.training.micro_batch_size or 1,
        )


def build_loop(
    stack: ExitStack,
    run: Run,
    engine: Engine,
    *,
    resumption: Resumption,
    stragglers: Stragglers,
) -> Loop:
    """Put the loop together, with all that looks on; the stack ends what has to be ended."""
    config, training, ranks = run.config, run.training, run.ranks
    return Loop(
        training=training,
        save_when_stopped=config.checkpoint.on_preemption == "save",
        ranks=ranks,
        engine=engine,
        keeper=resumption.keeper,
        ledger=stack.enter_context(_ledger(resumption, ranks)),
        goodput=run.goodput,
        made_before=config.earlier.step if config.earlier else 0,
        stop=stack.enter_context(stop_on_sigterm()),
        validation=_validation(run.corpus, run.share, samples=training.evaluation.max_samples),
        global_batch=run.share.global_batch,
        samples_per_epoch=run.corpus.train.samples_per_epoch,
        peak=_peak(ranks, training),
        metrics=_metrics(
            stack,
            resumption,
            training,
            device=ranks.device,
            goodput=run.goodput,
            stragglers=stragglers,
        ),
        pace=Pace(ranks.rank, ranks.world_size, time.perf_counter),
        stragglers=stragglers,
        telemetry=_telemetry(stack, config, resumption, scratch=run.scratch),
    )


def _validation(corpus: Corpus, share: Share, *, samples: int) -> Callable[[], Iterator[Batch]]:
    """What gives this rank's evaluation batches anew, always the same."""
    return lambda: corpus.validation.fixed_batches(
        samples,
        rank=share.rank,
        world_size=share.world_size,
        micro_batch=share.micro_batch,
    )


def _peak(ranks: Ranks, training: TrainingSpec) -> float | None:
    if ranks.device.type != "cuda":
        return None
    return peak_operations(torch.cuda.get_device_name(ranks.device), training.precision)


def _ledger(resumption: Resumption, ranks: Ranks) -> Ledger:
    generation = resumption.keeper.saver.generation
    return Ledger.from_environment(os.environ, rank=ranks.rank, generation=generation.number)


def _metrics(
    stack: ExitStack,
    resumption: Resumption,
    training: TrainingSpec,
    *,
    device: torch.device,
    goodput: Goodput,
    stragglers: Stragglers,
) -> TrainingMetrics:
    """Figures of this rank for whoever scrapes its pod."""
    metrics = TrainingMetrics(
        resumption,
        goodput=goodput,
        stragglers=stragglers,
        device=device,
        skips_spikes=training.anomalies.spike == "skip",
        clock=time.time,
    )
    stack.enter_context(published(metrics))
    return metrics


def _telemetry(
    stack: ExitStack,
    config: TrainStageConfig,
    resumption: Resumption,
    *,
    scratch: Path,
) -> Telemetry | None:
    """Rank 0's figures; the other ranks have none."""
    saver = resumption.keeper.saver
    if saver.group.rank:
        return None
    telemetry = Telemetry(
        _log_directory(os.environ, scratch),
        progress=resumption.progress,
        store=saver.store,
        reporter=ProgressReporter("train", attempt=config.attempt),
        tensorboard=config.training.logging.tensorboard,
    )
    return stack.enter_context(telemetry)


def _log_directory(environment: Mapping[str, str], scratch: Path) -> Path:
    directory = environment.get(LOG_DIR_ENV)
    return Path(directory) if directory else scratch / "logs"
