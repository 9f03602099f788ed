"""The trained model as an artifact: whole fp32 weights, tokenizer, hyperparameters and curve.

Wall-clock figures have a file of their own, so that equal training gives equal bytes elsewhere.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import deepspeed
import torch
from pretrain_api.reports import Artifact, StageResult
from pretrain_api.spec.training import TrainingSpec
from pretrain_api.stages import TrainStageConfig
from torch import Tensor
from transformers import PreTrainedModel
from transformers.utils.logging import disable_progress_bar

from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.local_copy import LocalCopies
from pretrain_jobs.errors import NonFiniteError
from pretrain_jobs.model.padding import resize_vocabulary
from pretrain_jobs.storage import ObjectStore, artifact, open_store
from pretrain_jobs.train.artifacts import MODEL_KIND
from pretrain_jobs.train.corpus import Corpus
from pretrain_jobs.train.engine import Engine
from pretrain_jobs.train.figures import newest_line
from pretrain_jobs.train.loop import Loop
from pretrain_jobs.train.resume import Resumption
from pretrain_jobs.train.state import LogLine, Progress

WALL_FIGURES = frozenset({"tokensPerSecond", "stepSeconds", "mfu"})
"""Figures of the log that depend on the machine."""


def finish(
    loop: Loop,
    progress: Progress,
    build: Callable[[], PreTrainedModel],
    *,
    config: TrainStageConfig,
    corpus: Corpus,
    resumption: Resumption,
    scratch: Path,
    failpoints: Failpoints,
) -> StageResult:
    """Write the trained model and tell the attempt's result; both are rank 0's.

    A collective up to the gathering of the weights. `build` gives a model of the trained shape.
    """
    loop.show(progress, doing="writing the model")
    resumption.keeper.saver.close(tidily=True)
    engine, rank = loop.engine, loop.ranks.rank
    weights = consolidate(engine, rank=rank)
    if resumption.keeper.saver.local:
        LocalCopies(resumption.keeper.saver.local).remove()  # the last step is committed
    if rank != 0 or loop.telemetry is None:
        return StageResult()
    model = whole_model(build(), weights, vocab_size=corpus.tokens.length)
    saver = resumption.keeper.saver
    documents = {
        "training.json": training_document(config, loop.training, progress),
        "performance.json": performance_document(loop, generation=saver.generation.number),
    }
    evaluation = newest_line(progress, "validation").get("validation")
    if evaluation is not None:
        documents["eval_results.json"] = evaluation
    write_model(
        open_store(config.storage, config.model_uri),
        model,
        config=config,
        tokenizer=corpus.tokenizer,
        documents=documents,
        scratch=scratch,
        failpoints=failpoints,
    )
    loop.telemetry.publish()
    return stage_result(loop, progress, config=config, resumption=resumption)


def consolidate(engine: Engine, *, rank: int) -> dict[str, Tensor]:
    """Every parameter whole, fp32, on the CPU, by name; on rank 0 alone. A collective."""
    weights: dict[str, Tensor] = {}
    for name, parameter in engine.model.named_parameters():
        with deepspeed.zero.GatheredParameters([parameter], enabled=hasattr(parameter, "ds_id")):
            if rank == 0:
                weights[name] = parameter.detach().to("cpu", torch.float32, copy=True)
    return weights


def whole_model(
    model: PreTrainedModel, weights: Mapping[str, Tensor], *, vocab_size: int
) -> PreTrainedModel:
    """A freshly built model with the trained weights, its vocabulary cut to the tokenizer's.

    NonFiniteError for a weight that is not finite; a weight of another shape is a defect here and
    raises RuntimeError, as it must never reach the artifact.
    """
    parameters = dict(model.named_parameters())
    if parameters.keys() != weights.keys():
        raise RuntimeError(f"weights differ in names: {parameters.keys() ^ weights.keys()}")
    for name, parameter in parameters.items():
        if not torch.isfinite(weights[name]).all():
            raise NonFiniteError(f"the trained weight {name} is not finite; no model is written")
        with torch.no_grad():
            parameter.copy_(weights[name].view_as(parameter))
    resize_vocabulary(model, vocab_size)
    return model


def write_model(
    store: ObjectStore,
    model: PreTrainedModel,
    *,
    config: TrainStageConfig,
    tokenizer: Path,
    documents: Mapping[str, Mapping[str, Any]],
    scratch: Path,
    failpoints: Failpoints,
) -> None:
    """Write the artifact: weights and configuration, tokenizer files, JSON documents by name."""
    directory = scratch / "model"
    shutil.rmtree(directory, ignore_errors=True)
    disable_progress_bar()  # type: ignore[no-untyped-call]
    model.save_pretrained(directory)
    for path in sorted(tokenizer.iterdir()):
        shutil.copyfile(path, directory / path.name)
    for name, content in documents.items():
        (directory / name).write_text(json.dumps(content, indent=1, sort_keys=True) + "\n")
    files = artifact.upload_directory(store, directory)
    failpoints.reach("before_model_manifest")
    artifact.commit(
        store,
        kind=MODEL_KIND,
        fingerprint=config.model_fingerprint,
        files=files,
        extra={"dataset": config.dataset_fingerprint},
    )
    shutil.rmtree(directory)


def training_document(
    config: TrainStageConfig, training: TrainingSpec, progress: Progress
) -> dict[str, Any]:
    """training.json: what was trained on what, and the curve; nothing that the clock decides."""
    workers = config.workers
    lines = [_timeless(line) for line in progress.log]
    return {
        "formatVersion": 1,
        "dataset": config.dataset_fingerprint,
        "model": config.model.model_dump(mode="json", by_alias=True),
        "objective": config.objective.model_dump(mode="json", by_alias=True, exclude_none=True),
        "training": training.model_dump(mode="json", by_alias=True),
        "preprocess": {
            "sequenceLength": config.preprocess.sequence_length,
            "packing": config.preprocess.packing.model_dump(mode="json", by_alias=True),
        },
        "worldSize": workers.replicas * workers.processes_per_worker,
        "threadsPerProcess": workers.threads_per_process,
        "device": workers.device,
        "steps": progress.step,
        "samples": progress.samples,
        "epochs": progress.samples / progress.cursor.samples_per_epoch,
        "tokens": vars(progress.tokens),
        "skippedSteps": progress.anomalies.skipped,
        "lossSpikes": progress.anomalies.spikes,
        "curve": [line for line in lines if "learningRate" in line],
        "evaluations": [line for line in lines if "validation" in line],
    }


def _timeless(line: LogLine) -> LogLine:
    return {name: value for name, value in line.items() if name not in WALL_FIGURES}


def performance_document(loop: Loop, *, generation: int) -> dict[str, Any]:
    """performance.json: wall figures of the attempt that came to the end, and time of all.

    `goodputRatio` is that of all attempts, with waits and pauses between them as badput.
    """
    sheet = loop.goodput.sheet
    return {
        "generation": generation,
        "steps": loop.total.steps,
        "seconds": loop.goodput.seconds,
        "allAttempts": sheet.model_dump(mode="json", by_alias=True),
        "goodputRatio": sheet.ratio,
        "tokensPerSecond": loop.total.tokens_per_second,
        "mfu": loop.total.utilisation(peak=loop.peak, world_size=loop.ranks.world_size),
    }


def stage_result(
    loop: Loop, progress: Progress, *, config: TrainStageConfig, resumption: Resumption
) -> StageResult:
    """What the plan hears of a finished training."""
    keeper = resumption.keeper
    saver = keeper.saver
    failures = f"{saver.failures} checkpoints could not be saved; see the log"
    return StageResult(
        artifacts=[
            Artifact(stage="train", fingerprint=config.model_fingerprint, uri=config.model_uri)
        ],
        counts={
            "steps": progress.step,
            "samples": progress.samples,
            "tokens": progress.tokens.real,
            "skipped_steps": progress.anomalies.skipped,
            "loss_spikes": progress.anomalies.spikes,
            "checkpoint_failures": saver.failures,
            "checkpoints_skipped": keeper.skipped,
        },
        metrics=_metrics(loop, progress),
        step=progress.step,
        checkpoint=saver.latest,
        time_sheet=loop.goodput.sheet,
        warnings=[*resumption.warnings, *([failures] if saver.failures else [])],
    )


def _metrics(loop: Loop, progress: Progress) -> dict[str, float]:
    training = newest_line(progress, "loss")
    validation = newest_line(progress, "validation").get("validation", {})
    figures = {
        "train/loss": training.get("loss"),
        "train/validation_loss": validation.get("loss"),
        "train/validation_perplexity": validation.get("perplexity"),
        "train/validation_accuracy": validation.get("accuracy"),
        "train/tokens_per_second": loop.total.tokens_per_second.get("real"),
    }
    return {name: value for name, value in figures.items() if value is not None}
