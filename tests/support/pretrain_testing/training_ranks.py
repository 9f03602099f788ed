"""The training of one rank without launcher and torchrun, for tests that need many starts."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pretrain_api.reports import StageResult
from pretrain_api.stages import TrainStageConfig
from pretrain_jobs.process import load_config
from pretrain_jobs.train.corpus import open_corpus
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.ledger import LEDGER_ENV
from pretrain_jobs.train.main import train
from pretrain_jobs.train.ranks import Ranks

from pretrain_testing.ranks import Gang, start_ranks
from pretrain_testing.training import Bed


def start_training(bed: Bed, *, attempt: int = 0) -> Gang:
    """Start all ranks of a job, as the workers of its nodes would be."""
    home = bed.directory / f"attempt-{attempt}"
    home.mkdir(parents=True, exist_ok=True)
    bed.ledger.mkdir(exist_ok=True)
    path = home / "config.json"
    path.write_text(bed.config(attempt=attempt).model_dump_json(by_alias=True))
    return start_ranks(train_rank, bed.processes, path, home / "scratch", bed.ledger)


def train_rank(ranks: Ranks, config_path: Path, scratch: Path, ledger: Path) -> StageResult:
    """Train one rank to the end."""
    os.environ[LEDGER_ENV] = str(ledger)
    config = load_config(TrainStageConfig, config_path)
    scratch.mkdir(exist_ok=True)
    with open_corpus(config, scratch) as corpus:
        return train(config, ranks, corpus, scratch=scratch, goodput=Goodput(time.monotonic))
