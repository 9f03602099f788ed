"""Starting an attempt: when it may, and which of its children are still missing."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from pretrain_api.status import StageStatus

from pretrain_operator.children.attempt import Attempt
from pretrain_operator.children.bundle import build_attempt
from pretrain_operator.children.pod import grace_seconds
from pretrain_operator.children.resolved import resolved_job, storage_of
from pretrain_operator.observed import Manifest, Observed
from pretrain_operator.plan.decision import Draft, Turn, instant
from pretrain_operator.plan.failures import has_ended
from pretrain_operator.plan.goodput import earlier_attempts
from pretrain_operator.plan.quarantine import kept_out
from pretrain_operator.plan.stages import completions, known_artifacts


def start_or_wait(turn: Turn, draft: Draft, stage: StageStatus) -> Draft:
    """Apply the attempt's missing children, unless it has to wait."""
    if stage.retry_time is not None and turn.now < stage.retry_time:
        return _wait(draft, stage, stage.retry_time, reason=stage.message)
    released_at = _released_at(turn, stage)
    if released_at is not None and turn.now < released_at:
        return _wait(draft, stage, released_at, reason="pods of the attempt before are ending.")
    attempt = attempt_to_build(turn, draft, stage)
    missing = [m for m in build_attempt(attempt) if not _exists(m, turn.observed)]
    return replace(draft, apply=(*draft.apply, *missing))


def attempt_to_build(
    turn: Turn, draft: Draft, stage: StageStatus, *, size: int | None = None
) -> Attempt:
    """What the current attempt's children are made from; `size` is that of one that was begun."""
    job, trains = resolved_job(turn.job, turn.settings), stage.name == "train"
    return Attempt(
        job=job,
        stage=stage.name,
        number=stage.attempt,
        completions=size or completions(stage, job.spec),
        artifacts=known_artifacts(draft.status.stages),
        storage=storage_of(job, turn.settings),
        settings=turn.settings,
        avoided_nodes=kept_out(draft.status, turn.now) if trains else (),
        last_nodes=tuple(draft.status.workers.nodes) if trains else (),
        earlier=earlier_attempts(draft.status.goodput) if trains else None,
    )


def _wait(draft: Draft, stage: StageStatus, until: datetime, *, reason: str) -> Draft:
    name = f"Attempt {stage.attempt} of {stage.name}"
    sentence = f"{name} starts at {instant(until)} at the latest: {reason}"
    return replace(draft, blocked_by=sentence).waking_at(until)


def _released_at(turn: Turn, stage: StageStatus) -> datetime | None:
    """Until when the pods of older attempts may keep the next one waiting.

    They may be saving a last checkpoint. A pod on a lost node never ends, so the wait is bounded
    by their grace period; the checkpoints' fence keeps such a pod harmless.
    """
    older = turn.older_attempts_of(stage)
    if all(has_ended(pod) for attempt in older for pod in attempt.pods):
        return None
    grace = timedelta(seconds=grace_seconds(turn.job.spec, stage.name))
    return (stage.retry_time or older[0].created_at) + grace


def _exists(manifest: Manifest, observed: Observed) -> bool:
    names = {
        "Service": observed.services,
        "ConfigMap": observed.config_maps,
        "Job": tuple(job.name for job in observed.jobs),
    }
    return manifest["metadata"]["name"] in names[manifest["kind"]]
