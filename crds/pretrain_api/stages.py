"""Configs of the stages' processes: what the operator writes into a stage's ConfigMap.

`python -m pretrain_jobs <stage> --config FILE` reads one of these. Every URI in them is
absolute. Secrets are never part of a config; they reach a pod as environment variables.

The image may be of another version than the operator. It leaves out the fields that it does not
know, except those of the spec's sections that the job asks for: see `StageConfig.asked`.
"""

from __future__ import annotations

from pydantic import Field

from pretrain_api.base import Message
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.corpus import CorpusSpec
from pretrain_api.spec.evaluation import EvaluationSpec, ExportSpec
from pretrain_api.spec.lifecycle import CheckpointSpec
from pretrain_api.spec.model import ModelSpec
from pretrain_api.spec.objective import ObjectiveSpec
from pretrain_api.spec.preprocess import PreprocessSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.spec.training import TrainingSpec
from pretrain_api.spec.workers import WorkersSpec
from pretrain_api.timesheet import EarlierAttempts


class JobRef(Message):
    """The job that a stage works for."""

    namespace: str
    name: str
    uid: str


class StageConfig(Message):
    """What every stage needs."""

    job: JobRef
    attempt: int = 0
    storage: StorageSpec = Field(description="Always set here, its uri absolute.")
    asked: tuple[str, ...] = Field(
        (),
        description="Dotted paths of the fields in the spec's sections that are not at their "
        "default: a process that does not know one of them must refuse.",
    )


class TokenizerStageConfig(StageConfig):
    """Resolve the sources, load or train the tokenizer, tell every later fingerprint.

    `spec` is resolved: no field is left to a preset or an architecture's default.
    """

    spec: PretrainJobSpec


class PreprocessStageConfig(StageConfig):
    """Prepare one slice; the index comes from JOB_COMPLETION_INDEX.

    The slices are in `<dataset_uri>/plan.json`, which the tokenizer stage wrote.
    """

    corpus: CorpusSpec
    preprocess: PreprocessSpec
    objective: ObjectiveSpec
    tokenizer_uri: str
    dataset_uri: str
    dataset_fingerprint: str
    seed: int


class RendezvousConfig(Message):
    """Where rank 0 listens; the node rank comes from JOB_COMPLETION_INDEX."""

    host: str
    port: int
    run_id: str
    timeout_seconds: int


class TrainStageConfig(StageConfig):
    """Train from the newest committed checkpoint to the last step, then write the model."""

    dataset_uri: str
    dataset_fingerprint: str
    end_of_document: str | None = Field(
        None, description="The token of spec.tokenizer.endOfDocument."
    )
    model_uri: str
    model_fingerprint: str
    checkpoint_uri: str
    model: ModelSpec
    objective: ObjectiveSpec
    preprocess: PreprocessSpec
    training: TrainingSpec
    workers: WorkersSpec
    checkpoint: CheckpointSpec
    rendezvous: RendezvousConfig
    hang_timeout_seconds: int = Field(
        1800, description="Of spec.failurePolicy.hang: the longest time without a step."
    )
    earlier: EarlierAttempts | None = Field(
        None, description="None before the first attempt has told anything."
    )


class EvaluateStageConfig(StageConfig):
    """Fine-tune and measure every task."""

    model_uri: str
    model_fingerprint: str
    evaluation_uri: str
    evaluation_fingerprint: str
    evaluation: EvaluationSpec
    workers: WorkersSpec


class ExportStageConfig(StageConfig):
    """Write and check the Hugging Face directory."""

    model_uri: str
    model_fingerprint: str
    dataset_uri: str
    dataset_fingerprint: str
    evaluation_uri: str = Field("", description="Empty when no task was evaluated.")
    export_uri: str
    export_fingerprint: str
    export: ExportSpec
    spec: PretrainJobSpec = Field(description="The resolved spec, for the model card.")
