"""The job as the builders read it: defaults filled in, storage set, every URI absolute.

What cannot be turned into children is told here as problems with the field's path.
"""

from __future__ import annotations

from pretrain_api.documents import job_problems
from pretrain_api.errors import InvalidObjectError
from pretrain_api.job import PretrainJob
from pretrain_api.problems import Problem
from pretrain_api.resolve import resolve
from pretrain_api.spec.storage import StorageSpec

from pretrain_operator.children.template_rules import template_problems
from pretrain_operator.children.uris import with_absolute_uris
from pretrain_operator.observed import Settings


def find_problems(job: PretrainJob, settings: Settings) -> list[Problem]:
    """Everything that keeps a job from being run, as the user wrote it; empty when it can be."""
    return [
        *job_problems(job),
        *template_problems(job.spec),
        *storage_problems(job, settings),
    ]


def resolved_job(job: PretrainJob, settings: Settings) -> PretrainJob:
    """The job with a spec that is complete; raises InvalidObjectError without any storage."""
    storage = storage_of(job, settings)
    spec = resolve(job.spec).model_copy(update={"storage": storage})
    return job.model_copy(update={"spec": with_absolute_uris(spec, storage.uri)})


def storage_of(job: PretrainJob, settings: Settings) -> StorageSpec:
    """The job's storage, or the default one; raises InvalidObjectError when there is neither."""
    problems = storage_problems(job, settings)
    if problems:
        raise InvalidObjectError(problems)
    return job.spec.storage or StorageSpec(
        uri=settings.default_storage_uri,
        endpoint_url=settings.default_storage_endpoint_url,
        credentials_secret=settings.default_storage_credentials_secret,
    )


def storage_problems(job: PretrainJob, settings: Settings) -> list[Problem]:
    """The problem of a job without any storage, if it has it."""
    if job.spec.storage or settings.default_storage_uri:
        return []
    return [
        Problem(
            ("spec", "storage"),
            "is left out, and no default storage is configured: set spec.storage.uri",
        )
    ]
