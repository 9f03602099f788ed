"""`spec.evaluation` and `spec.export`: what is measured and handed over at the end."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import ApiModel, FieldName, Label, Name, NonNegative, Positive, Seed, Uri
from pretrain_api.spec.workers import ResourcesSpec

Metric = Literal["accuracy", "f1", "mcc"]


class TaskDataSpec(ApiModel):
    """Labelled examples (JSON lines or CSV), with their own test file or a held-out share."""

    uri: Uri
    test_uri: Uri | None = None
    test_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.2
    text_field: FieldName = "text"
    label_field: FieldName = "label"
    max_train_samples: Positive | None = None
    max_test_samples: Positive | None = None


class FineTuningSpec(ApiModel):
    """Hyperparameters of a task's fine-tuning."""

    epochs: Annotated[int, Field(ge=1, le=1000)] = 3
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = 32
    learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] = 5e-5
    warmup_ratio: Annotated[float, Field(ge=0.0, le=1.0)] = 0.1
    weight_decay: Annotated[float, Field(ge=0.0, le=1.0)] = 0.01
    max_length: Annotated[int, Field(ge=8, le=1_048_576)] = 128


class TaskSpec(ApiModel):
    """One task, fine-tuned once per seed from the trained and, on request, random weights."""

    name: Label
    type: Literal["sequenceClassification", "tokenClassification", "questionAnswering"] = (
        "sequenceClassification"
    )
    data: TaskDataSpec
    metrics: Annotated[list[Metric], Field(max_length=8)] = ["accuracy", "f1", "mcc"]
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=32)] = [1, 2, 3]
    compare_with_random: bool = Field(
        True, description="Fine-tune random weights too, to show what pretraining brought."
    )
    fine_tuning: FineTuningSpec = FineTuningSpec()


class EvaluationSpec(ApiModel):
    """Tasks that are run after training; none means that the stage is left out."""

    tasks: Annotated[list[TaskSpec], Field(max_length=16)] = []
    resources: ResourcesSpec = ResourcesSpec()


class PushSpec(ApiModel):
    """Upload of the export to a model hub."""

    repo: Name
    token_secret: Name


class ModelCardSpec(ApiModel):
    """What the model card says beside figures."""

    title: Annotated[str, Field(max_length=256)] | None = None
    language: Annotated[list[Annotated[str, Field(max_length=16)]], Field(max_length=32)] = []
    license: Annotated[str, Field(max_length=64)] | None = None
    description: Annotated[str, Field(max_length=4096)] | None = None


class ExportSpec(ApiModel):
    """A Hugging Face directory that AutoModel and AutoTokenizer load."""

    uri: Uri | None = Field(None, description="exports/ under the storage when left out.")
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    max_shard_bytes: NonNegative = 5 * 10**9
    push: PushSpec | None = None
    model_card: ModelCardSpec = ModelCardSpec()
    resources: ResourcesSpec = ResourcesSpec()
