"""What a checkpoint costs training, against DeepSpeed's own blocking `save_checkpoint`.

A model of more than 100 M parameters at ZeRO stage 1 on two processes of one thread each. Plain
steps, DeepSpeed's save and ours alternate in the same run, so that whatever else the machine does
hits all alike. A stall is all that step boundaries lose to a save: beginning it, what of the
copying the next step did not hide, and learning the outcome. Ranks meet before each of these and
before DeepSpeed's save, so that none counts what it waits for a slower rank's step.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, cast

import psutil
import torch
from deepspeed.runtime.checkpoint_engine.torch_checkpoint_engine import TorchCheckpointEngine
from pretrain_api.stages import TrainStageConfig
from pretrain_jobs.checkpoint import snapshot
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.model.build import build_config, build_model
from pretrain_jobs.model.parameters import count_parameters
from pretrain_jobs.process import load_config
from pretrain_jobs.train.corpus import open_corpus
from pretrain_jobs.train.data import Share, Step
from pretrain_jobs.train.engine import Engine, build_engine
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.optimize import Wishes, optimize
from pretrain_jobs.train.pace import Pace
from pretrain_jobs.train.ranks import Place, Ranks, process_group
from pretrain_jobs.train.resume import Resumption, resume
from pretrain_jobs.train.saving import Saving
from pretrain_jobs.train.state import Progress

from benchmarks.training_job import RANKS, free_port, make_dataset, training_config

LAYERS, WIDTH = 14, 768
MICRO_BATCH = 2
PLAIN_STEPS = 2
"""Steps without a save before each save and after the last."""

SAVES = 3
"""The first has to allocate its memory, the others find it there."""


@dataclass
class Figures:
    """One rank's. Times in seconds, memory in bytes; a list has one entry for each save."""

    parameters: int = 0
    state_bytes: int = 0
    plain: list[float] = field(default_factory=list)
    while_saving: list[float] = field(default_factory=list)
    stalls: list[float] = field(default_factory=list)
    writing: list[float] = field(default_factory=list)
    blocking: list[float] = field(default_factory=list)
    buffer_bytes: int = 0
    writer_bytes: int = 0
    peak_growth_bytes: int = 0

    def stalled(self, seconds: float) -> None:
        """Take a save's stall, as training's metrics do."""
        self.stalls.append(seconds)

    def saved(self, seconds: float, *, size: int) -> None:
        """Take how long the writers of a commit took."""
        if size:
            self.writing.append(seconds)


def measure_checkpoint() -> dict[str, Any]:
    """Stalls as shares of DeepSpeed's blocking save, throughput while writing, extra memory."""
    with tempfile.TemporaryDirectory(prefix="pretrain-benchmark-") as name:
        directory = Path(name)
        make_dataset(directory / "dataset")
        told = _run(directory / "run")
    blocking = min(_slowest(told, "blocking"))
    cold, *warm = _slowest(told, "stalls")
    plain, saving = _slowest(told, "plain"), _slowest(told, "while_saving")
    state = sum(rank.state_bytes for rank in told)
    return {
        "parameters_million": told[0].parameters / 1e6,
        "state_mb": state / 1e6,
        "deepspeed_blocking_seconds": blocking,
        "stall_cold_seconds": cold,
        "stall_warm_seconds": _mean(warm),
        "stall_cold_ratio": cold / blocking,
        "stall_warm_ratio": _mean(warm) / blocking,
        "writing_seconds": _mean(_slowest(told, "writing")),
        "step_seconds": _mean(plain),
        "throughput_ratio_while_writing": median(
            (before + after) / 2 / between
            for before, between, after in zip(plain[:-1], saving, plain[1:], strict=True)
        ),
        "snapshot_memory_ratio": sum(rank.buffer_bytes for rank in told) / state,
        "writer_mb_per_rank": max(rank.writer_bytes for rank in told) / 1e6,
        "peak_growth_ratio": sum(rank.peak_growth_bytes for rank in told) / state,
    }


def _run(directory: Path) -> list[Figures]:
    directory.mkdir()
    config = training_config(directory, max_steps=1000, stage=1)
    shape = {
        "hidden_size": WIDTH,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": WIDTH // 64,
        "intermediate_size": 4 * WIDTH,
    }
    training = config.training.model_copy(
        update={"global_batch_size": RANKS * MICRO_BATCH, "micro_batch_size": MICRO_BATCH}
    )
    model = config.model.model_copy(update={"architecture": "bert", "config": shape})
    config = config.model_copy(update={"model": model, "training": training})
    (directory / "config.json").write_text(config.model_dump_json(by_alias=True))
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={RANKS}"]
    command += ["--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    command += ["-m", "benchmarks.checkpoint", str(directory)]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "DS_ACCELERATOR": "cpu",
        "GLOO_SOCKET_IFNAME": "lo",
        "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
        "PYTHONPATH": str(Path(__file__).parents[1]),
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the benchmark's ranks failed:\n{done.stderr[-4000:]}")
    return [Figures(**json.loads(path.read_text())) for path in sorted(directory.glob("rank-*"))]


@dataclass
class _Training:
    """One rank's engine with its batches and its saves."""

    ranks: Ranks
    engine: Engine
    steps: Iterator[Step]
    saving: Saving
    progress: Progress
    figures: Figures

    def step(self) -> tuple[float, Wishes]:
        """One optimizer step of the loop; its seconds, stall included."""
        before = time.perf_counter()
        outcome = optimize(
            self.engine,
            self.ranks,
            next(self.steps),
            learning_rate=1e-4,
            must_skip=lambda _: False,
            wishes=lambda: self.saving.wishes(stop=False),
            before_update=self.saving.before_update,
            pace=Pace(self.ranks.rank, RANKS, time.perf_counter),
        )
        self.progress = Progress(step=self.progress.step + 1, cursor=self.progress.cursor)
        return time.perf_counter() - before, outcome.wishes

    def plain(self) -> float:
        """Seconds of a step without a save."""
        return _mean([self.step()[0] for _ in range(PLAIN_STEPS)])

    def save(self) -> None:
        """Begin to save and train until the outcome is known."""
        before, steps = time.perf_counter(), 0
        self.ranks.meet()
        self.saving.begin(self.progress)
        while self.saving.keeper.saver.pending:
            _, wishes = self.step()
            self.ranks.meet()
            self.saving.after_step(wishes)
            steps += 1
        self.figures.while_saving.append((time.perf_counter() - before) / steps)

    def save_blocking(self, directory: Path) -> None:
        """DeepSpeed's own save to the same disk; all ranks wait for the slowest."""
        deepspeed = self.engine.deepspeed
        deepspeed.checkpoint_engine = TorchCheckpointEngine()
        self.ranks.meet()
        before = time.perf_counter()
        deepspeed.save_checkpoint(str(directory), tag="blocking", save_latest=False)
        self.ranks.meet()
        self.figures.blocking.append(time.perf_counter() - before)
        own = directory.rglob(f"zero_pp_rank_{self.ranks.rank}_*")
        shared = directory.rglob(snapshot.SHARED_FILE) if self.ranks.rank == 0 else []
        self.figures.state_bytes = sum(path.stat().st_size for path in [*own, *shared])
        snapshot.prepare(deepspeed)
        self.ranks.meet()
        shutil.rmtree(directory, ignore_errors=True)


def _rank(directory: Path) -> None:
    """One rank, under torchrun."""
    torch.set_num_threads(1)
    config = load_config(TrainStageConfig, directory / "config.json")
    place = Place.from_environment(os.environ)
    scratch = directory / f"scratch-{place.rank}"
    with (
        process_group(place, device="cpu", timeout_seconds=600) as ranks,
        open_corpus(config, scratch) as corpus,
    ):
        model_config = build_config(
            config.model, tokens=corpus.tokens, sequence_length=corpus.sequence_length
        )
        share = Share(ranks.rank, RANKS, RANKS * MICRO_BATCH, MICRO_BATCH)
        engine = build_engine(
            lambda: build_model(model_config, seed=1),
            training=config.training,
            share=share,
            device=ranks.device,
            vocab_size=corpus.tokens.length,
        )
        start = corpus.train.start()
        resumption = resume(
            config, ranks, engine, start, scratch=scratch, local=None, failpoints=Failpoints()
        )
        figures = Figures(parameters=count_parameters(engine.model))
        training = _Training(
            ranks=ranks,
            engine=engine,
            steps=corpus.train.steps(start, share),
            saving=_saving(resumption, figures),
            progress=resumption.progress,
            figures=figures,
        )
        with resumption.keeper:
            _measure(training, scratch / "blocking")
    (directory / f"rank-{place.rank}.json").write_text(json.dumps(asdict(figures)))


def _saving(resumption: Resumption, figures: Figures) -> Saving:
    metrics = cast("Any", figures)
    return Saving(resumption.keeper, Goodput(time.monotonic), metrics, telemetry=None)


def _measure(training: _Training, directory: Path) -> None:
    figures, writer, peak = training.figures, training.saving.keeper.saver.writer, 0
    training.step()
    figures.plain.append(training.plain())
    for number in range(SAVES):
        training.save_blocking(directory / str(number))
        peak = _peak_bytes() if number == 0 else peak
        training.save()
        figures.plain.append(training.plain())
    figures.buffer_bytes = writer.buffer.size
    (process,) = psutil.Process().children()
    figures.writer_bytes = process.memory_full_info().uss
    figures.peak_growth_bytes = _peak_bytes() - peak


def _peak_bytes() -> int:
    """The largest resident memory of this process so far, the snapshot's pages included."""
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


def _slowest(told: list[Figures], name: str) -> list[float]:
    """The slowest rank's seconds, save by save."""
    return [max(values) for values in zip(*(getattr(rank, name) for rank in told), strict=True)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


if __name__ == "__main__":
    _rank(Path(sys.argv[1]))
