"""One rank of the training: config, process group, data, model, engine, restore, loop, finish.

torchrun starts it, once per rank; `train.launcher` starts torchrun. It reads top to bottom.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import torch
from pretrain_api.reports import TERMINATION_LOG_ENV, StageResult
from pretrain_api.spec.training import TrainingSpec
from pretrain_api.stages import TrainStageConfig
from transformers import PreTrainedModel

from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.local_copy import local_root
from pretrain_jobs.checkpoint.random_state import seed_random_state
from pretrain_jobs.model.build import build_config, build_model
from pretrain_jobs.objectives.batch import Batch
from pretrain_jobs.objectives.tensors import check_isolation
from pretrain_jobs.process import ProgressReporter, load_config
from pretrain_jobs.telemetry.samples import published
from pretrain_jobs.train.corpus import Corpus, open_corpus
from pretrain_jobs.train.data import Share
from pretrain_jobs.train.devices import require_devices
from pretrain_jobs.train.engine import build_engine
from pretrain_jobs.train.finish import finish
from pretrain_jobs.train.goodput import Goodput
from pretrain_jobs.train.heartbeat import Heartbeat
from pretrain_jobs.train.ledger import Ledger
from pretrain_jobs.train.lifeline import die_with_agent
from pretrain_jobs.train.loop import Loop
from pretrain_jobs.train.metrics import TrainingMetrics
from pretrain_jobs.train.node import SCRATCH_ENV
from pretrain_jobs.train.pace import Pace, Stragglers, node_name
from pretrain_jobs.train.process_age import STARTED_ENV, handed_down
from pretrain_jobs.train.ranks import Place, Ranks, process_group
from pretrain_jobs.train.resume import Resumption, resume
from pretrain_jobs.train.schedule import with_known_steps
from pretrain_jobs.train.stacks import told_at_signal
from pretrain_jobs.train.stopping import ended_by_sigterm, stop_on_sigterm
from pretrain_jobs.train.telemetry import LOG_DIR_ENV, Telemetry
from pretrain_jobs.train.throughput import peak_operations


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
    share = Share(
        rank=ranks.rank,
        world_size=ranks.world_size,
        global_batch=training.global_batch_size or 1,
        micro_batch=training.micro_batch_size or 1,
    )
    build = _model_builder(config, corpus)
    engine = build_engine(
        build,
        training=training,
        share=share,
        device=ranks.device,
        vocab_size=corpus.tokens.length,
    )
    failpoints = Failpoints.from_environment(os.environ)
    seed_random_state(training.seed, ranks.rank)
    start = corpus.train.start()
    with goodput.during("restore"):
        resumption = resume(
            config,
            ranks,
            engine,
            start,
            scratch=scratch,
            local=local_root(os.environ, config.job),
            failpoints=failpoints,
        )
    goodput.go_on_from(resumption.progress.time_sheet, config.earlier)
    stragglers = Stragglers(ranks.gather(node_name(os.environ, socket.gethostname())))
    with ExitStack() as stack:
        stack.enter_context(resumption.keeper)
        loop = Loop(
            training=training,
            save_when_stopped=config.checkpoint.on_preemption == "save",
            ranks=ranks,
            engine=engine,
            keeper=resumption.keeper,
            ledger=stack.enter_context(_ledger(resumption, ranks)),
            goodput=goodput,
            made_before=config.earlier.step if config.earlier else 0,
            stop=stack.enter_context(stop_on_sigterm()),
            validation=_validation(corpus, share, samples=training.evaluation.max_samples),
            global_batch=share.global_batch,
            samples_per_epoch=corpus.train.samples_per_epoch,
            peak=_peak(ranks, training),
            metrics=_metrics(
                stack,
                resumption,
                training,
                device=ranks.device,
                goodput=goodput,
                stragglers=stragglers,
            ),
            pace=Pace(ranks.rank, ranks.world_size, time.perf_counter),
            stragglers=stragglers,
            telemetry=_telemetry(stack, config, resumption, scratch=scratch),
        )
        goodput.enter("idle")
        steps = corpus.train.steps(resumption.progress.cursor, share)
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


def _validation(corpus: Corpus, share: Share, *, samples: int) -> Callable[[], Iterator[Batch]]:
    """What gives this rank's evaluation batches anew, always the same."""
    return lambda: corpus.validation.fixed_batches(
        samples,
        rank=share.rank,
        world_size=share.world_size,
        micro_batch=share.micro_batch,
    )


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
