"""The training of one rank without launcher and torchrun, for tests that need many starts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pretrain_api.reports import StageResult
from pretrain_api.stages import TrainStageConfig
from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.process import load_config
from pretrain_jobs.train.corpus import open_corpus
from pretrain_jobs.train.data import SampleLoader
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.ledger import LEDGER_ENV
from pretrain_jobs.train.main import train
from pretrain_jobs.train.ranks import Ranks

from pretrain_testing.ranks import Gang, start_ranks
from pretrain_testing.training import Bed


class _Stopping:
    """A validation loader that sends SIGTERM to its process in the second evaluation."""

    def __init__(self, loader: SampleLoader) -> None:
        self._loader = loader
        self._evaluations = 0

    def fixed_batches(self, max_samples: int, **share: int) -> Iterator[Batch]:
        self._evaluations += 1
        for batch in self._loader.fixed_batches(max_samples, **share):
            if self._evaluations == 2:
                os.kill(os.getpid(), signal.SIGTERM)
            yield batch


def start_training(bed: Bed, *, attempt: int = 0, stopped: int | None = None) -> Gang:
    """Start all ranks of a job, as the workers of its nodes would be.

    Rank `stopped` gets SIGTERM in the middle of its second evaluation.
    """
    home = bed.directory / f"attempt-{attempt}"
    home.mkdir(parents=True, exist_ok=True)
    bed.ledger.mkdir(exist_ok=True)
    path = home / "config.json"
    path.write_text(bed.config(attempt=attempt).model_dump_json(by_alias=True))
    return start_ranks(train_rank, bed.processes, path, home / "scratch", bed.ledger, stopped)


def train_rank(
    ranks: Ranks, config_path: Path, scratch: Path, ledger: Path, stopped: int | None
) -> StageResult:
    """Train one rank to the end."""
    os.environ[LEDGER_ENV] = str(ledger)
    config = load_config(TrainStageConfig, config_path)
    scratch.mkdir(exist_ok=True)
    with open_corpus(config, scratch) as opened:
        stopping = cast("Any", _Stopping(opened.validation))
        corpus = replace(opened, validation=stopping) if ranks.rank == stopped else opened
        return train(config, ranks, corpus, scratch=scratch, goodput=Goodput(time.monotonic))
