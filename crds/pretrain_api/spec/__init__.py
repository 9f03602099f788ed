"""`spec` of a PretrainJob: one file per section, put together here."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pretrain_api.base import ApiModel, Seconds
from pretrain_api.spec.corpus import CorpusSpec
from pretrain_api.spec.evaluation import EvaluationSpec, ExportSpec
from pretrain_api.spec.lifecycle import CheckpointSpec, FailurePolicySpec, SchedulingSpec
from pretrain_api.spec.model import ModelSpec
from pretrain_api.spec.objective import ObjectiveSpec
from pretrain_api.spec.preprocess import PreprocessSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.spec.tokenizer import TokenizerSpec
from pretrain_api.spec.training import TrainingSpec
from pretrain_api.spec.workers import WorkersSpec

__all__ = ["PretrainJobSpec"]


class PretrainJobSpec(ApiModel):
    """From raw text to an evaluated, exported language model."""

    suspend: bool = Field(False, description="No pods while true; training resumes afterwards.")
    active_deadline_seconds: Annotated[Seconds, Field(ge=1)] | None = Field(
        None, description="The job fails when it has run for longer."
    )
    pending_deadline_seconds: Annotated[Seconds, Field(ge=1)] | None = Field(
        None, description="The job fails when pods of an attempt wait for longer."
    )
    ttl_seconds_after_finished: Seconds | None = Field(
        None, description="The object is deleted this long after the job has ended."
    )
    managed_by: Annotated[str, Field(max_length=63)] | None = Field(
        None,
        description="Controller that runs the job: pretrain.dev/operator, which is also meant "
        "when left out, or another one, whose job is not touched.",
    )
    storage: StorageSpec | None = Field(
        None, description="Locally DIR/storage, on a cluster the operator's default."
    )
    corpus: CorpusSpec
    tokenizer: TokenizerSpec = TokenizerSpec()
    objective: ObjectiveSpec = ObjectiveSpec()
    preprocess: PreprocessSpec = PreprocessSpec()
    model: ModelSpec
    training: TrainingSpec = TrainingSpec()
    workers: WorkersSpec = WorkersSpec()
    checkpoint: CheckpointSpec = CheckpointSpec()
    evaluation: EvaluationSpec = EvaluationSpec()
    export: ExportSpec = ExportSpec()
    failure_policy: FailurePolicySpec = FailurePolicySpec()
    scheduling: SchedulingSpec = SchedulingSpec()
