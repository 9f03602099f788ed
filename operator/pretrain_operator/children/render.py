"""All children that a job would have, without a cluster and before anything has run."""

from __future__ import annotations

from pretrain_api.errors import InvalidObjectError
from pretrain_api.job import PretrainJob
from pretrain_api.reports import STAGES, StageName

from pretrain_operator.children.attempt import Attempt, StageArtifact
from pretrain_operator.children.bundle import build_attempt
from pretrain_operator.children.resolved import find_problems, resolved_job, storage_of
from pretrain_operator.children.uris import absolute_uri
from pretrain_operator.observed import Manifest, Settings

FINGERPRINT_PLACEHOLDER = "0" * 16
"""Stands for a fingerprint, which only the tokenizer stage can tell."""

DIRECTORIES: dict[StageName, str] = {
    "tokenizer": "tokenizers",
    "preprocess": "datasets",
    "train": "models",
    "evaluate": "evaluations",
    "export": "exports",
}


def render(job: PretrainJob, settings: Settings) -> list[Manifest]:
    """The children of every stage's first attempt, in the order of the stages.

    Fingerprints are placeholders, and preprocessing has one slice. Raises InvalidObjectError with
    all problems of a job that would not be accepted.
    """
    problems = find_problems(job, settings)
    if problems:
        raise InvalidObjectError(problems)
    resolved = resolved_job(job, settings)
    return [
        manifest
        for stage in STAGES
        if stage != "evaluate" or resolved.spec.evaluation.tasks
        for manifest in build_attempt(_first_attempt(resolved, stage, settings))
    ]


def _first_attempt(job: PretrainJob, stage: StageName, settings: Settings) -> Attempt:
    storage = storage_of(job, settings)
    return Attempt(
        job=job,
        stage=stage,
        number=0,
        completions=job.spec.workers.replicas if stage == "train" else 1,
        artifacts={name: _placeholder(job, name, storage.uri) for name in STAGES},
        storage=storage,
        settings=settings,
    )


def _placeholder(job: PretrainJob, stage: StageName, root: str) -> StageArtifact:
    own = job.spec.export.uri if stage == "export" else None
    directory = f"{DIRECTORIES[stage]}/{FINGERPRINT_PLACEHOLDER}"
    return StageArtifact(FINGERPRINT_PLACEHOLDER, own or absolute_uri(directory, root))
