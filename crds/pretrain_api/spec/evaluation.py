"""`spec.evaluation` and `spec.export`: what is measured and handed over at the end."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pretrain_api.base import (
    ApiModel,
    FieldName,
    Fraction,
    Name,
    NonNegative,
    ObjectName,
    Positive,
    Seed,
    Uri,
)
from pretrain_api.spec.workers import ResourcesSpec

Metric = Literal["accuracy", "f1", "mcc"]
TaskName = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")
]


class TaskDataSpec(ApiModel):
    """Labelled examples (JSON lines or CSV), with their own test file or a held-out share."""

    uri: Uri = Field(description="Labelled examples: JSON lines (.jsonl) or CSV (.csv).")
    test_uri: Uri | None = Field(
        None, description="Test examples; a share of the others when left out."
    )
    test_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] = Field(
        0.2, description="Share of the examples held out as the test, without a testUri."
    )
    text_field: FieldName = Field("text", description="Field or column with the text.")
    label_field: FieldName = Field("label", description="Field or column with the label.")
    max_train_samples: Positive | None = Field(
        None, description="Most examples to fine-tune on; all when left out."
    )
    max_test_samples: Positive | None = Field(
        None, description="Most examples to test on; all when left out."
    )


class FineTuningSpec(ApiModel):
    """Hyperparameters of a task's fine-tuning."""

    epochs: Annotated[int, Field(ge=1, le=1000)] = Field(3, description="Passes over the examples.")
    batch_size: Annotated[int, Field(ge=1, le=65_536)] = Field(
        32, description="Examples of one step."
    )
    learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] = Field(
        5e-5, description="Peak learning rate."
    )
    warmup_ratio: Fraction = Field(0.1, description="Share of the steps that warm up.")
    weight_decay: Fraction = Field(0.01, description="Weight decay; none on biases and norms.")
    max_length: Annotated[int, Field(ge=8, le=1_048_576)] = Field(
        128, description="Positions of an example; longer texts are cut."
    )


class TaskSpec(ApiModel):
    """One task, fine-tuned once per seed from the trained and, on request, random weights."""

    name: TaskName = Field(description="Name of the task in results; unique in the list.")
    type: Literal["sequenceClassification", "tokenClassification", "questionAnswering"] = Field(
        "sequenceClassification", description="What is predicted of a text."
    )
    data: TaskDataSpec
    metrics: Annotated[list[Metric], Field(min_length=1, max_length=8)] = Field(
        ["accuracy", "f1", "mcc"], description="What is measured on the test (f1 is macro)."
    )
    seeds: Annotated[list[Seed], Field(min_length=1, max_length=32)] = Field(
        [1, 2, 3], description="One fine-tuning each; results are their mean and spread."
    )
    compare_with_random: bool = Field(
        True, description="Fine-tune random weights too, to show what pretraining brought."
    )
    fine_tuning: FineTuningSpec = FineTuningSpec()


class EvaluationSpec(ApiModel):
    """Tasks that are run after training; none means that the stage is left out."""

    tasks: Annotated[list[TaskSpec], Field(max_length=16)] = Field(
        [], description="What the trained model is measured by."
    )
    resources: ResourcesSpec = ResourcesSpec()


class PushSpec(ApiModel):
    """Upload of the export to a model hub."""

    repo: Name = Field(description="Repository on the hub, owner/name.")
    token_secret: ObjectName = Field(description="Secret whose key token holds the hub's token.")


class ModelCardSpec(ApiModel):
    """What the model card says beside figures."""

    title: Annotated[str, Field(max_length=256)] | None = Field(
        None, description="Heading of the card; the job's name when left out."
    )
    language: Annotated[list[Annotated[str, Field(max_length=16)]], Field(max_length=32)] = Field(
        [], description="Languages of the model (ISO 639-1)."
    )
    license: Annotated[str, Field(max_length=64)] | None = Field(
        None, description="Licence of the model, as hubs name it."
    )
    description: Annotated[str, Field(max_length=4096)] | None = Field(
        None, description="Paragraph below the heading."
    )


class ExportSpec(ApiModel):
    """A Hugging Face directory that AutoModel and AutoTokenizer load."""

    uri: Uri | None = Field(None, description="exports/ under the storage when left out.")
    dtype: Literal["float32", "bfloat16", "float16"] = Field(
        "float32", description="Type of the exported weights."
    )
    max_shard_bytes: NonNegative = Field(
        5 * 10**9, description="Largest file of weights; more are written as several."
    )
    push: PushSpec | None = None
    model_card: ModelCardSpec = ModelCardSpec()
    resources: ResourcesSpec = ResourcesSpec()
