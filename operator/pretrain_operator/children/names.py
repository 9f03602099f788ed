"""Names and labels of children, and the selectors made of them; no object is built here."""

from __future__ import annotations

import re

from pretrain_api.base import GROUP
from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageName

HOST_NAME_LIMIT = 63
"""Characters of a DNS label (RFC 1035); an indexed pod's host name is the Job's plus its index."""

CONTAINER = "main"
"""Name of the container that runs a stage."""

JOB_LABEL = f"{GROUP}/job"
JOB_UID_LABEL = f"{GROUP}/job-uid"
STAGE_LABEL = f"{GROUP}/stage"
ATTEMPT_LABEL = f"{GROUP}/attempt"
GENERATION_ANNOTATION = f"{GROUP}/generation"
"""On a child Job: the generation of the spec that it was made from."""

MANAGER = "pretrain-operator"

_LARGEST_INDEX: dict[StageName, str] = {"preprocess": "-99999", "train": "-4095"}


def uid5(uid: str) -> str:
    """The first five hexadecimal digits of a uid, filled with zeros when it has fewer."""
    return re.sub(r"[^0-9a-f]", "", uid.lower())[:5].ljust(5, "0")


def child_name(*, job: str, uid: str, stage: StageName, attempt: int) -> str:
    """`<job>-<uid5>-<stage>-<attempt>`, the job's part cut where a host name would not fit.

    The uid keeps cut names apart. Room is kept for the largest index a stage can have, so that a
    stage's names do not change with its number of pods.
    """
    suffix = f"-{uid5(uid)}-{stage}-{attempt}"
    room = HOST_NAME_LIMIT - len(suffix) - len(_LARGEST_INDEX.get(stage, "-0"))
    return job[:room].rstrip("-.") + suffix


def job_labels(job: PretrainJob) -> dict[str, str]:
    """Labels that every child of a job carries."""
    return {
        "app.kubernetes.io/name": "pretrain-job",
        "app.kubernetes.io/instance": job.metadata.name,
        "app.kubernetes.io/part-of": MANAGER,
        "app.kubernetes.io/managed-by": MANAGER,
        JOB_LABEL: job.metadata.name,
        JOB_UID_LABEL: job.metadata.uid,
    }


def attempt_labels(job: PretrainJob, *, stage: StageName, attempt: int) -> dict[str, str]:
    """Labels of the children and pods of one attempt."""
    return {
        **job_labels(job),
        "app.kubernetes.io/component": stage,
        **attempt_selector(job, stage=stage, attempt=attempt),
    }


def attempt_selector(job: PretrainJob, *, stage: StageName, attempt: int) -> dict[str, str]:
    """The labels that single out the pods of one attempt."""
    return {
        JOB_UID_LABEL: job.metadata.uid,
        STAGE_LABEL: stage,
        ATTEMPT_LABEL: str(attempt),
    }


def gang_selector(job: PretrainJob) -> str:
    """Label selector of the training pods, as the scale subresource wants it."""
    return f"{JOB_UID_LABEL}={job.metadata.uid},{STAGE_LABEL}=train"


def rank0_host(name: str, namespace: str) -> str:
    """DNS name of the pod with index 0 of a Job whose headless Service has the Job's name.

    It stops at `.svc`, so that it holds in any cluster domain.
    """
    return f"{name}-0.{name}.{namespace}.svc"
