"""Whose child an object is: told by its labels, which every child and every pod carries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from pretrain_api.reports import STAGES, StageName

from pretrain_operator.children.names import ATTEMPT_LABEL, JOB_LABEL, JOB_UID_LABEL, STAGE_LABEL
from pretrain_operator.observe.raw import Raw, part

JobKey = tuple[str, str]
"""Namespace and name of a PretrainJob."""


@dataclass(frozen=True, slots=True)
class Identity:
    """The attempt that an object belongs to, and the job that the attempt belongs to."""

    key: JobKey
    job_uid: str
    stage: StageName
    attempt: int

    @classmethod
    def of(cls, raw: Raw) -> Identity | None:
        """Read it from an object's labels; None when the object is no child of ours."""
        labels = part(raw, "metadata", "labels")
        key, uid = key_of(raw), uid_of(raw)
        stage, attempt = labels.get(STAGE_LABEL), str(labels.get(ATTEMPT_LABEL, ""))
        if key is None or not uid or stage not in STAGES or not attempt.isdecimal():
            return None
        return cls(key=key, job_uid=uid, stage=cast("StageName", stage), attempt=int(attempt))


def key_of(raw: Raw) -> JobKey | None:
    """Namespace and name of the PretrainJob that an object is a child of; None when of none."""
    metadata = part(raw, "metadata")
    name = part(metadata, "labels").get(JOB_LABEL)
    return (str(metadata.get("namespace", "")), str(name)) if name else None


def uid_of(raw: Raw) -> str:
    """The uid of the PretrainJob that an object is a child of, empty when of none."""
    return str(part(raw, "metadata", "labels").get(JOB_UID_LABEL, ""))
