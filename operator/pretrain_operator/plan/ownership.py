"""Whose job it is: one that another controller manages is not touched at all."""

from __future__ import annotations

from pretrain_api.base import CONTROLLER
from pretrain_api.job import PretrainJob


def is_foreign(job: PretrainJob) -> bool:
    """Whether spec.managedBy names somebody else."""
    return job.spec.managed_by not in (None, CONTROLLER)
