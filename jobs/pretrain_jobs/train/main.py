"""One rank of the training: config, process group, data, model, engine, restore, loop, finish.

torchrun starts it, once per rank; `train.launcher` starts torchrun. It reads top to bottom.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
from pretrain_api.reports import TERMINATION_LOG_ENV, StageResult
from pretrain_api.stages import TrainStageConfig
from transformers import PreTrainedModel

from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.local_copy import local_root
from pretrain_jobs.checkpoint.random_state import seed_random_state
from pretrain_jobs.model.build import build_config, build_model
from pretrain_jobs.objectives.tensors import check_isolation
from pretrain_jobs.process import load_config
from pretrain_jobs.train.corpus import Corpus, open_corpus
from pretrain_jobs.train.devices import require_devices
from pretrain_jobs.train.engine import Engine, build_engine
from pretrain_jobs.train.finish import finish
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.heartbeat import Heartbeat
from pretrain_jobs.train.lifeline import die_with_agent
from pretrain_jobs.train.node import SCRATCH_ENV
from pretrain_jobs.train.pace import Stragglers, node_name
from pretrain_jobs.train.process_age import STARTED_ENV, handed_down
from pretrain_jobs.train.ranks import Place, Ranks, process_group
from pretrain_jobs.train.resume import Resumption, resume
from pretrain_jobs.train.run import Run, build_loop
from pretrain_jobs.train.schedule import with_known_steps
from pretrain_jobs.train.stacks import told_at_signal
from pretrain_jobs.train.stopping import ended_by_sigterm


def main(config_path: Path) -> StageResult:
    """Train from the newest committed checkpoint to the last step, then write the model."""
    goodput = Goodput(time.monotonic, since=handed_down(os.environ.get(STARTED_ENV)))
    die_with_agent(os.environ)
    place = Place.from_environment(os.environ)
    scratch = Path(os.environ[SCRATCH_ENV])
    with _announced(place, scratch / "ranks", goodput):
        config = load_config(TrainStageConfig, config_path)
        torch.set_num_threads(config.workers.threads_per_process)
        require_devices(config.workers, local_rank=place.local_rank)
        with (
            ended_by_sigterm(),
            process_group(
                place,
                device=config.workers.device,
                timeout_seconds=config.rendezvous.timeout_seconds,
            ) as ranks,
            open_corpus(config, scratch) as corpus,
        ):
            return train(config, ranks, corpus, scratch=scratch, goodput=goodput)


def train(
    config: TrainStageConfig, ranks: Ranks, corpus: Corpus, *, scratch: Path, goodput: Goodput
) -> StageResult:
    """Train one rank on an open corpus; the result is rank 0's to tell. A collective."""
    training = with_known_steps(
        config.training,
        samples_per_epoch=corpus.train.samples_per_epoch,
        sequence_length=corpus.sequence_length,
    )
    run = Run(config, training, ranks, corpus, scratch, goodput)
    build = _model_builder(config, corpus)
    engine = build_engine(
        build,
        training=training,
        share=run.share,
        device=ranks.device,
        vocab_size=corpus.tokens.length,
    )
    failpoints = Failpoints.from_environment(os.environ)
    resumption = _resumption(run, engine, failpoints)
    stragglers = Stragglers(ranks.gather(node_name(os.environ, socket.gethostname())))
    with ExitStack() as stack:
        stack.enter_context(resumption.keeper)
        loop = build_loop(stack, run, engine, resumption=resumption, stragglers=stragglers)
        goodput.enter("idle")
        steps = corpus.train.steps(resumption.progress.cursor, run.share)
        progress = loop.run(resumption.progress, steps)
        return finish(
            loop,
            progress,
            build,
            config=config,
            corpus=corpus,
            resumption=resumption,
            scratch=scratch,
            failpoints=failpoints,
        )


def _resumption(run: Run, engine: Engine, failpoints: Failpoints) -> Resumption:
    """Where the training goes on: the newest commit, or its start. A collective."""
    seed_random_state(run.training.seed, run.ranks.rank)
    start = run.corpus.train.start()
    with run.goodput.during("restore"):
        resumption = resume(
            run.config,
            run.ranks,
            engine,
            start,
            scratch=run.scratch,
            local=local_root(os.environ, run.config.job),
            failpoints=failpoints,
        )
    run.goodput.go_on_from(resumption.progress.time_sheet, run.config.earlier)
    return resumption


def _model_builder(config: TrainStageConfig, corpus: Corpus) -> Callable[[], PreTrainedModel]:
    """What builds the model anew with its first weights; UserError for what cannot be built."""
    model_config = build_config(
        config.model, tokens=corpus.tokens, sequence_length=corpus.sequence_length
    )

    def build() -> PreTrainedModel:
        seed, attention = config.training.seed, config.model.attention
        model = build_model(model_config, seed=seed, attention=attention)
        if corpus.isolated:
            check_isolation(model.config)
        return model

    return build


@contextmanager
def _announced(place: Place, directory: Path, goodput: Goodput) -> Iterator[None]:
    """Leave for the launcher what it watches and asks this rank by, and its report where it looks.

    The process id comes last: whoever has it finds the rest.
    """
    own = directory / f"{place.rank:05d}"
    os.environ[TERMINATION_LOG_ENV] = str(own.with_suffix(".json"))
    path = own.with_suffix(".pid")
    with told_at_signal(own.with_suffix(".stack")), Heartbeat(own.with_suffix(".beat")) as beat:
        goodput.observer = beat.enter
        temporary = own.with_suffix(".tmp")
        temporary.write_text(str(os.getpid()))
        temporary.replace(path)
        try:
            yield
        finally:
            path.unlink()
