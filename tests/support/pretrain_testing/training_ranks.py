"""Ranks of a training without launcher and torchrun, for tests that need many starts.

They are forked from a server that has torch imported (see `ranks`).
"""

from __future__ import annotations

import logging
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, cast

import torch
from pretrain_api.reports import LOCAL_CHECKPOINTS_ENV, StageReport, StageResult
from pretrain_api.stages import TrainStageConfig
from pretrain_jobs.__main__ import main
from pretrain_jobs.checkpoint import snapshot
from pretrain_jobs.checkpoint.failpoints import FAILPOINT_ENV
from pretrain_jobs.checkpoint.files import encode_json
from pretrain_jobs.checkpoint.random_state import capture_random_state
from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.process import load_config
from pretrain_jobs.train import main as training_main
from pretrain_jobs.train.corpus import open_corpus
from pretrain_jobs.train.data import SampleLoader
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.ledger import LEDGER_ENV
from pretrain_jobs.train.main import train
from pretrain_jobs.train.node import Node, worker_environment
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.resume import Resumption
from pretrain_jobs.train.saving import Saving

from pretrain_testing.fork_server import CONTEXT
from pretrain_testing.ranks import Gang, rank_environment, start_ranks
from pretrain_testing.training import RUN_SECONDS, Bed, Ending, free_port


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


@dataclass(frozen=True)
class Manner:
    """What happens to ranks in training.

    Rank `stopped` gets SIGTERM in the middle of its second evaluation. Ranks that are `waiting`
    train on once a save has ended, so that every save that is due is made: these jobs are over in
    less time than a writer needs to start.
    """

    stopped: int | None = None
    waiting: bool = False


def start_training(
    bed: Bed, *, attempt: int = 0, stopped: int | None = None, waiting: bool = False
) -> Gang:
    """Start all ranks of a job, as the workers of its nodes would be; see Manner."""
    path = bed.write_config(attempt)
    return start_ranks(train_rank, bed.processes, path, bed.ledger, Manner(stopped, waiting))


def train_rank(ranks: Ranks, config_path: Path, ledger: Path, manner: Manner) -> StageResult:
    """Train one rank to the end."""
    scratch = config_path.parent / "scratch"
    if manner.waiting:
        Saving.begin = Saving.save  # type: ignore[method-assign, assignment]
    os.environ[LEDGER_ENV] = str(ledger)
    config = load_config(TrainStageConfig, config_path)
    scratch.mkdir(exist_ok=True)
    with open_corpus(config, scratch) as opened:
        stopping = cast("Any", _Stopping(opened.validation))
        corpus = replace(opened, validation=stopping) if ranks.rank == manner.stopped else opened
        return train(config, ranks, corpus, scratch=scratch, goodput=Goodput(time.monotonic))


def train_beside_a_volume(
    ranks: Ranks, config_path: Path, ledger: Path, volume: Path, failpoint: str
) -> StageResult:
    """Train one rank whose saves are left on a volume; each is waited for."""
    write_output_to(config_path.parent / f"output-{ranks.rank}")
    logging.basicConfig(level=logging.INFO, force=True)
    os.environ |= {LOCAL_CHECKPOINTS_ENV: str(volume), FAILPOINT_ENV: failpoint}
    return train_rank(ranks, config_path, ledger, Manner(waiting=True))


@dataclass(frozen=True)
class Witness:
    """Where an attempt's state right after resuming is written, and whether a commit kills it.

    Beside the engine's files there is `random-<rank>.json` with each rank's random generators.
    """

    loaded: Path
    dies: bool


def start_with_witness(bed: Bed, witness: Witness, *, attempt: int) -> Gang:
    """Start all ranks of a job; rank 0 may die at the attempt's first commit."""
    path = bed.write_config(attempt)
    return start_ranks(train_with_witness, bed.processes, path, bed.ledger, witness)


def train_with_witness(
    ranks: Ranks, config_path: Path, ledger: Path, witness: Witness
) -> StageResult:
    """Train one rank to the end, or until its attempt is killed."""
    if witness.dies:
        os.environ[FAILPOINT_ENV] = "after_latest:kill"
    module: Any = training_main
    undisturbed = module.resume

    def resume_and_tell(*arguments: Any, **options: Any) -> Resumption:
        resumption: Resumption = undisturbed(*arguments, **options)
        witness.loaded.mkdir(exist_ok=True)
        for name, content in snapshot.capture(resumption.keeper.saver.engine).items():
            torch.save(content, witness.loaded / name)
        random = encode_json(capture_random_state())
        (witness.loaded / f"random-{ranks.rank}.json").write_bytes(random)
        return resumption

    module.resume = resume_and_tell
    return train_rank(ranks, config_path, ledger, Manner(waiting=True))


def run_workers(
    bed: Bed, *, attempt: int = 0, file_bytes: int = -1, **environment: str
) -> list[Ending]:
    """Run the workers' own command on one node to its end; no file grows beyond `file_bytes`."""
    path = bed.write_config(attempt)
    node = Node(0, "127.0.0.1", path.parent / "scratch")
    node.reports.mkdir(parents=True)
    common = worker_environment(bed.config(), node, {LEDGER_ENV: str(bed.ledger), **environment})
    port = free_port()
    workers = [
        _start_worker(
            {**common, **rank_environment(rank, world_size=bed.processes, port=port)},
            path,
            file_bytes,
        )
        for rank in range(bed.processes)
    ]
    return [_ending(worker, node, rank) for rank, worker in enumerate(workers)]


def _start_worker(
    environment: Mapping[str, str], config: Path, file_bytes: int
) -> ForkServerProcess:
    output = config.parent / f"output-{environment['RANK']}"
    process = CONTEXT.Process(target=_work, args=(dict(environment), config, output, file_bytes))
    process.start()
    return process


def _work(environment: dict[str, str], config: Path, output: Path, file_bytes: int) -> None:
    os.environ |= environment
    write_output_to(output)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, hard))
    sys.exit(main(["train-worker", "--config", str(config)]))


def write_output_to(path: Path) -> None:
    """Have this process, and those that it starts, write what they say into a file."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for standard in (1, 2):
        os.dup2(descriptor, standard)


def _ending(worker: ForkServerProcess, node: Node, rank: int) -> Ending:
    worker.join(RUN_SECONDS)
    assert worker.exitcode is not None, "a worker hangs"
    path = node.reports / f"{rank:05d}.json"
    report = StageReport.model_validate_json(path.read_bytes()) if path.exists() else None
    output = node.scratch.parent / f"output-{rank}"
    return Ending(worker.exitcode, report, output.read_text())
