"""`--storage`: another place for a job's data, judged by the rules for spec.storage."""

from __future__ import annotations

from pretrain_api.documents import job_problems
from pretrain_api.job import PretrainJob
from pretrain_api.spec.storage import StorageSpec

from pretrainctl.errors import InvalidError


def with_storage_uri(job: PretrainJob, uri: str) -> PretrainJob:
    """The job with its storage elsewhere; InvalidError for a URI that no stage could open."""
    old = job.spec.storage
    new = StorageSpec(uri=uri) if old is None else old.model_copy(update={"uri": uri})
    moved = job.model_copy(update={"spec": job.spec.model_copy(update={"storage": new})})
    for problem in job_problems(moved):
        if problem.path == ("spec", "storage", "uri"):
            raise InvalidError(f"--storage: {problem.message}")
    return moved
