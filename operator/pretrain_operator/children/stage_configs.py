"""The config of each stage's process, made from a resolved spec and the known artifacts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pretrain_api.reports import StageName
from pretrain_api.skew import asked_fields
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.stages import (
    EvaluateStageConfig,
    ExportStageConfig,
    JobRef,
    PreprocessStageConfig,
    RendezvousConfig,
    StageConfig,
    TokenizerStageConfig,
    TrainStageConfig,
)

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.names import rank0_host
from pretrain_operator.children.uris import checkpoint_uri

LOOPBACK = "127.0.0.1"


def stage_config(attempt: Attempt) -> StageConfig:
    """The config of an attempt's stage; see `pretrain_api.stages` for each model.

    Pod templates are left out: they are the pods' business, may be large, and may hold what is
    not for everyone who reads a ConfigMap.
    """
    spec = _without_pod_templates(attempt.job.spec)
    job = attempt.job.model_copy(update={"spec": spec})
    config = _BUILDERS[attempt.stage](replace(attempt, job=job))
    return config.model_copy(update={"asked": asked_fields(config)})


def _without_pod_templates(spec: PretrainJobSpec) -> PretrainJobSpec:
    nothing = {"pod_template": None}
    return spec.model_copy(
        update={
            "preprocess": spec.preprocess.model_copy(update=nothing),
            "workers": spec.workers.model_copy(update=nothing),
        }
    )


def _common(attempt: Attempt) -> dict[str, Any]:
    metadata = attempt.job.metadata
    return {
        "job": JobRef(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
        "attempt": attempt.number,
        "storage": attempt.storage,
    }


def _tokenizer(attempt: Attempt) -> TokenizerStageConfig:
    return TokenizerStageConfig(**_common(attempt), spec=attempt.job.spec)


def _preprocess(attempt: Attempt) -> PreprocessStageConfig:
    spec = attempt.job.spec
    dataset = attempt.artifact("preprocess")
    return PreprocessStageConfig(
        **_common(attempt),
        corpus=spec.corpus,
        preprocess=spec.preprocess,
        objective=spec.objective,
        tokenizer_uri=attempt.artifact("tokenizer").uri,
        dataset_uri=dataset.uri,
        dataset_fingerprint=dataset.fingerprint,
        seed=spec.training.seed,
    )


def _train(attempt: Attempt) -> TrainStageConfig:
    spec = attempt.job.spec
    dataset, model = attempt.artifact("preprocess"), attempt.artifact("train")
    return TrainStageConfig(
        **_common(attempt),
        dataset_uri=dataset.uri,
        dataset_fingerprint=dataset.fingerprint,
        model_uri=model.uri,
        model_fingerprint=model.fingerprint,
        checkpoint_uri=checkpoint_uri(attempt.job, attempt.storage.uri),
        model=spec.model,
        objective=spec.objective,
        preprocess=spec.preprocess,
        training=spec.training,
        workers=spec.workers,
        checkpoint=spec.checkpoint,
        rendezvous=_rendezvous(attempt),
        hang_timeout_seconds=spec.failure_policy.hang.timeout_seconds,
        end_of_document=spec.tokenizer.end_of_document,
        earlier=attempt.earlier,
    )


def _rendezvous(attempt: Attempt) -> RendezvousConfig:
    """Name and run id hold the attempt, so that no rank joins an older attempt's store."""
    namespace = attempt.job.metadata.namespace
    return RendezvousConfig(
        host=rank0_host(attempt.name, namespace) if attempt.is_gang else LOOPBACK,
        port=attempt.rendezvous_port,
        run_id=attempt.name,
        timeout_seconds=attempt.job.spec.failure_policy.rendezvous_timeout_seconds,
    )


def _evaluate(attempt: Attempt) -> EvaluateStageConfig:
    spec = attempt.job.spec
    model, evaluation = attempt.artifact("train"), attempt.artifact("evaluate")
    return EvaluateStageConfig(
        **_common(attempt),
        model_uri=model.uri,
        model_fingerprint=model.fingerprint,
        evaluation_uri=evaluation.uri,
        evaluation_fingerprint=evaluation.fingerprint,
        evaluation=spec.evaluation,
        workers=spec.workers,
    )


def _export(attempt: Attempt) -> ExportStageConfig:
    spec = attempt.job.spec
    model, dataset = attempt.artifact("train"), attempt.artifact("preprocess")
    export = attempt.artifact("export")
    return ExportStageConfig(
        **_common(attempt),
        model_uri=model.uri,
        model_fingerprint=model.fingerprint,
        dataset_uri=dataset.uri,
        dataset_fingerprint=dataset.fingerprint,
        evaluation_uri=attempt.artifact("evaluate").uri if spec.evaluation.tasks else "",
        export_uri=export.uri,
        export_fingerprint=export.fingerprint,
        export=spec.export,
        spec=spec,
    )


_BUILDERS: dict[StageName, Callable[[Attempt], StageConfig]] = {
    "tokenizer": _tokenizer,
    "preprocess": _preprocess,
    "train": _train,
    "evaluate": _evaluate,
    "export": _export,
}
