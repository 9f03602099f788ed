"""All children of one attempt, in the order in which they must come into being."""

from __future__ import annotations

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.config_map import build_config_map
from pretrain_operator.children.jobs import build_job
from pretrain_operator.children.service import build_service
from pretrain_operator.observed import Manifest


def build_attempt(attempt: Attempt) -> tuple[Manifest, ...]:
    """Service (for a gang), ConfigMap, Job.

    The Service comes first, so that no resolver caches the absence of a name that it will serve.
    """
    service = (build_service(attempt),) if attempt.is_gang else ()
    return (*service, build_config_map(attempt), build_job(attempt))
