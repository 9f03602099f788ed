"""Training throughput: this project's loop against a bare DeepSpeed loop.

Both train the quickstart's model on equal batches at the same ZeRO stage, on two processes of one
thread each. The bare loop has its batches ready as tensors and does nothing but forward, backward
and step; ours also forms samples, reduces counts, looks for anomalies, logs and shows progress.
Blocks of steps of both alternate within the same two processes, so that whatever else the
machine does hits both alike. Starting, saving and evaluating are not in the figures.

The headline ratio is with the same forward pass. A bare loop as people write it computes logits
at every position; the ratio to that one is told as well.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Any, Literal, cast

import torch
from pretrain_api.stages import TrainStageConfig
from pretrain_jobs.model.build import build_config, build_model
from pretrain_jobs.model.parameters import optimizer_groups
from pretrain_jobs.objectives.tensors import label_tensor, model_inputs
from pretrain_jobs.process import load_config
from pretrain_jobs.train.corpus import Corpus, open_corpus
from pretrain_jobs.train.data import Share
from pretrain_jobs.train.engine import import_deepspeed
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.label_rows import LabelRows
from pretrain_jobs.train.main import train
from pretrain_jobs.train.ranks import Place, Ranks, process_group

from benchmarks.training_job import (
    GLOBAL_BATCH,
    LENGTH,
    RANKS,
    free_port,
    make_dataset,
    training_config,
)

Variant = Literal["ours", "bare", "bare_dense"]
VARIANTS: tuple[Variant, ...] = ("ours", "bare", "bare_dense")
BLOCK = 25
"""Steps of one variant in a row."""

WARM_UP_STEPS = BLOCK
IGNORED = -100


def measure_training(steps: int = 200, *, stage: int = 1) -> dict[str, Any]:
    """Run `steps` steps of each variant, rounded up to whole blocks, and compare.

    `throughput_ratio` is our tokens a second over those of the bare loop with the same forward
    pass, `throughput_ratio_to_dense` over those of the one with all logits; `cpu_ratio` our
    CPU-seconds over the bare loop's. Tokens are positions, of both ranks together.
    """
    steps = -(-steps // BLOCK) * BLOCK
    with tempfile.TemporaryDirectory(prefix="pretrain-benchmark-") as name:
        directory = Path(name)
        make_dataset(directory / "dataset")
        told = _run(directory / "run", steps=steps, stage=stage)
    seconds = {variant: max(rank[variant]["seconds"] for rank in told) for variant in VARIANTS}
    cpu = {variant: sum(rank[variant]["cpu_seconds"] for rank in told) for variant in VARIANTS}
    return {
        "throughput_ratio": seconds["bare"] / seconds["ours"],
        "throughput_ratio_to_dense": seconds["bare_dense"] / seconds["ours"],
        "cpu_ratio": cpu["ours"] / cpu["bare"],
        **{
            f"{variant}_tokens_per_second": steps * GLOBAL_BATCH * LENGTH / seconds[variant]
            for variant in VARIANTS
        },
        **{f"{variant}_cpu_seconds_per_step": cpu[variant] / steps for variant in VARIANTS},
        "steps": steps,
        "zero_stage": stage,
    }


def _run(directory: Path, *, steps: int, stage: int) -> list[dict[str, dict[str, float]]]:
    """Run both ranks under torchrun; each rank's seconds by variant."""
    directory.mkdir()
    (directory / "config.json").write_text(
        training_config(directory, max_steps=WARM_UP_STEPS + steps, stage=stage).model_dump_json(
            by_alias=True
        )
    )
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={RANKS}"]
    command += ["--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    command += ["-m", "benchmarks.training", str(directory)]
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
    return [json.loads(path.read_text()) for path in sorted(directory.glob("rank-*.json"))]


@dataclass
class _Stopwatch:
    """Adds up wall and CPU time of blocks."""

    seconds: float = 0.0
    cpu_seconds: float = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of the block."""
        wall, cpu = time.perf_counter(), time.process_time()
        yield
        self.seconds += time.perf_counter() - wall
        self.cpu_seconds += time.process_time() - cpu


@dataclass
class _Bare:
    """A bare DeepSpeed loop over batches that are ready: forward, backward, step, nothing else."""

    engine: Any
    batches: Iterator[tuple[dict[str, Any], torch.Tensor]]
    rows: LabelRows | None
    stopwatch: _Stopwatch

    def block(self) -> None:
        """Train one block of steps."""
        for inputs, labels in islice(self.batches, BLOCK):
            targets = labels.flatten() if self.rows is None else self.rows.choose(labels)
            logits = self.engine(**inputs).logits.flatten(0, -2)
            loss = torch.nn.functional.cross_entropy(logits, targets, ignore_index=IGNORED)
            self.engine.backward(loss)
            self.engine.step()


class _Alternating:
    """A sample loader between whose steps the bare loops have their blocks."""

    def __init__(self, loader: Any, bare: list[_Bare], stopwatch: _Stopwatch) -> None:
        self._loader = loader
        self._bare = bare
        self._stopwatch = stopwatch

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def steps(self, cursor: Any, share: Any) -> Iterator[Any]:
        """The loader's steps; the time from the wish for one to the wish for the next is ours."""
        steps = self._loader.steps(cursor, share)
        for number in count():
            if number % BLOCK == 0:
                self._let_bare_loops_run(measured=number > 0)
            with self._stopwatch.running() if number >= WARM_UP_STEPS else nullcontext():
                yield next(steps)

    def _let_bare_loops_run(self, *, measured: bool) -> None:
        for loop in self._bare:
            with loop.stopwatch.running() if measured else nullcontext():
                loop.block()


def _rank(directory: Path) -> None:
    """One rank, under torchrun."""
    torch.set_num_threads(1)
    config = load_config(TrainStageConfig, directory / "config.json")
    stopwatches = {variant: _Stopwatch() for variant in VARIANTS}
    place = Place.from_environment(os.environ)
    scratch = directory / f"scratch-{place.rank}"
    with (
        process_group(place, device="cpu", timeout_seconds=120) as ranks,
        open_corpus(config, scratch) as corpus,
    ):
        deepspeed = import_deepspeed(ranks.device)
        bare = [
            _bare_loop(deepspeed, config, ranks, corpus, stopwatches[variant], variant=variant)
            for variant in VARIANTS[1:]
        ]
        alternating = _Alternating(corpus.train, bare, stopwatches["ours"])
        alternated = replace(corpus, train=cast("Any", alternating))
        train(config, ranks, alternated, scratch=scratch, goodput=Goodput(time.monotonic))
    told = {variant: asdict(stopwatch) for variant, stopwatch in stopwatches.items()}
    (directory / f"rank-{place.rank}.json").write_text(json.dumps(told))


def _bare_loop(
    deepspeed: Any,
    config: TrainStageConfig,
    ranks: Ranks,
    corpus: Corpus,
    stopwatch: _Stopwatch,
    *,
    variant: Variant,
) -> _Bare:
    """A model of its own and the same AdamW, without decay on biases and norms as ours."""
    model_config = build_config(config.model, tokens=corpus.tokens, sequence_length=LENGTH)
    model = build_model(model_config, seed=config.training.seed)
    optimizer = torch.optim.AdamW(
        optimizer_groups(model, 0.01), lr=2e-3, betas=(0.9, 0.98), eps=1e-6, fused=True
    )
    engine, *_ = deepspeed.initialize(
        model=model,
        optimizer=optimizer,
        config={
            "train_batch_size": GLOBAL_BATCH,
            "train_micro_batch_size_per_gpu": GLOBAL_BATCH // RANKS,
            "gradient_clipping": 1.0,
            "zero_optimization": {"stage": config.training.zero.stage},
            "steps_per_print": None,
        },
    )
    share = Share(ranks.rank, ranks.world_size, GLOBAL_BATCH, GLOBAL_BATCH // RANKS)
    steps = corpus.train.steps(corpus.train.start(), share)
    ready = [
        (model_inputs(batch, model_config, ranks.device), label_tensor(batch, ranks.device))
        for step in islice(steps, (config.training.max_steps or 0) + BLOCK)
        for batch in step.batches
    ]
    rows = None if variant == "bare_dense" else LabelRows(model)
    return _Bare(engine, iter(ready), rows, stopwatch)


if __name__ == "__main__":
    _rank(Path(sys.argv[1]))
