"""From a job's inputs to the fingerprint and place of every stage's artifact.

The chain is pure but for one question to the store: is this artifact committed already?
"""

from __future__ import annotations

from pretrain_api.fingerprints import (
    dataset_fingerprint,
    evaluation_fingerprint,
    export_fingerprint,
    model_fingerprint,
)
from pretrain_api.reports import Artifact, StageName
from pretrain_api.spec import PretrainJobSpec
from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.storage import open_store
from pretrain_jobs.storage.artifact import is_committed
from pretrain_jobs.storage.uri import absolute_uri
from pretrain_jobs.tokenizer.inputs import Inputs

PLACES: dict[StageName, tuple[str, str]] = {
    "tokenizer": ("tokenizers", "tokenizer"),
    "preprocess": ("datasets", "dataset"),
    "train": ("models", "model"),
    "evaluate": ("evaluations", "evaluation"),
    "export": ("exports", "export"),
}
"""Folder under the storage, and kind of artifact, by stage."""


def fingerprints(
    inputs: Inputs, *, tokenizer: str, tokenizer_sha256: str, spec: PretrainJobSpec
) -> dict[StageName, str]:
    """The fingerprint of each stage's artifact."""
    dataset = dataset_fingerprint(inputs.corpus, tokenizer_sha256, spec)
    model = model_fingerprint(dataset, spec)
    evaluation = evaluation_fingerprint(model, inputs.tasks, spec)
    return {
        "tokenizer": tokenizer,
        "preprocess": dataset,
        "train": model,
        "evaluate": evaluation,
        "export": export_fingerprint(model, evaluation, spec),
    }


def artifact_uri(
    stage: StageName, fingerprint: str, *, spec: PretrainJobSpec, storage: StorageSpec
) -> str:
    """Where a stage's artifact lies, or will lie; an export may have its own place."""
    if stage == "export" and spec.export.uri is not None:
        return absolute_uri(spec.export.uri, base=storage.uri)
    return absolute_uri(f"{PLACES[stage][0]}/{fingerprint}", base=storage.uri)


def find_artifacts(
    found: dict[StageName, str], *, spec: PretrainJobSpec, storage: StorageSpec
) -> list[Artifact]:
    """Every stage's artifact, and whether it is committed."""
    artifacts: list[Artifact] = []
    for stage, fingerprint in found.items():
        uri = artifact_uri(stage, fingerprint, spec=spec, storage=storage)
        committed = is_committed(
            open_store(storage, uri), kind=PLACES[stage][1], fingerprint=fingerprint
        )
        artifacts.append(Artifact(stage=stage, fingerprint=fingerprint, uri=uri, cached=committed))
    return artifacts
