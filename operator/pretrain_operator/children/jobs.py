"""The Indexed Job of an attempt, and which failures end it.

Retries of an attempt are the plan's, under budgets by cause; only a slice of preprocessing is
tried again inside its Job, for one slice says nothing about the others.
"""

from __future__ import annotations

from typing import Any

from pretrain_api.reports import EXIT_CODES, Cause

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.metadata import child_metadata
from pretrain_operator.children.names import CONTAINER, GENERATION_ANNOTATION
from pretrain_operator.children.pod import build_pod_template
from pretrain_operator.observed import Manifest

SLICE_RETRIES = 2
FINAL_EXIT_CODES = sorted(
    EXIT_CODES[cause] for cause in (Cause.USER_ERROR, Cause.DATA_ERROR, Cause.CHECKPOINT_UNUSABLE)
)
"""Exit codes after which no retry can succeed."""


def build_job(attempt: Attempt) -> Manifest:
    """A batch/v1 Job; every pod gets its completion index in JOB_COMPLETION_INDEX."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {**child_metadata(attempt), "annotations": _annotations(attempt)},
        "spec": {
            "completionMode": "Indexed",
            "completions": attempt.completions,
            "parallelism": _parallelism(attempt),
            **_failure_rules(attempt),
            "template": build_pod_template(attempt),
        },
    }


def _annotations(attempt: Attempt) -> dict[str, str]:
    return {GENERATION_ANNOTATION: str(attempt.job.metadata.generation)}


def _parallelism(attempt: Attempt) -> int:
    """A gang runs all at once; slices run as many at a time as the spec asks for."""
    if attempt.stage == "preprocess":
        return min(attempt.job.spec.preprocess.parallelism, attempt.completions)
    return attempt.completions


def _failure_rules(attempt: Attempt) -> dict[str, Any]:
    """Elsewhere than in preprocessing, the first lost pod ends the Job and all its pods."""
    if attempt.stage != "preprocess":
        return {"backoffLimit": 0, "podReplacementPolicy": "Failed"}
    return {
        "backoffLimitPerIndex": SLICE_RETRIES,
        "maxFailedIndexes": 0,
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {"rules": [_final_failure(), _disruption()]},
    }


def _final_failure() -> dict[str, Any]:
    return {
        "action": "FailJob",
        "onExitCodes": {
            "containerName": CONTAINER,
            "operator": "In",
            "values": FINAL_EXIT_CODES,
        },
    }


def _disruption() -> dict[str, Any]:
    return {
        "action": "Ignore",
        "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
    }
