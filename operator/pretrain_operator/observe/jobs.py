"""Child Jobs with their pods, as the plan reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageProgress, StageReport

from pretrain_operator.children.names import GENERATION_ANNOTATION
from pretrain_operator.observe.events import FailedCreate
from pretrain_operator.observe.identity import Identity
from pretrain_operator.observe.pods import PodFacts
from pretrain_operator.observe.raw import Raw, entries, is_true, moment, part
from pretrain_operator.observed import JobCondition, Observed, ObservedJob, ObservedPod, Refusal

_CONDITIONS: tuple[JobCondition, ...] = (
    "Failed",
    "Complete",
    "FailureTarget",
    "SuccessCriteriaMet",
    "Suspended",
)
"""Of several that hold, the first counts: a final one before the one that announced it."""


@dataclass(frozen=True)
class Children:
    """Everything that exists of one PretrainJob.

    `jobs` are raw batch/v1 Jobs, `services` and `config_maps` names. `gone_pods` do not exist any
    more; what they have committed counts all the same.
    """

    jobs: tuple[Mapping[str, Any], ...] = ()
    pods: tuple[PodFacts, ...] = ()
    gone_pods: tuple[PodFacts, ...] = ()
    services: tuple[str, ...] = ()
    config_maps: tuple[str, ...] = ()
    failed_creates: tuple[FailedCreate, ...] = ()
    refusals: tuple[Refusal, ...] = ()


def observed_of(
    job: PretrainJob,
    children: Children,
    *,
    progress: tuple[StageProgress, ...] = (),
    stepped_at: datetime | None = None,
) -> Observed:
    """Sort a job's children for the plan; those of a deleted job of the same name are left out."""
    uid = job.metadata.uid
    pods = [facts for facts in children.pods if facts.job_uid == uid]
    jobs = tuple(_jobs(uid, children, pods))
    known = {child.name for child in jobs}
    orphans = [facts for facts in pods if facts.child not in known and _was_begun(job, facts)]
    return Observed(
        jobs=tuple(sorted((*jobs, *_gone_jobs(orphans)), key=_order)),
        services=children.services,
        config_maps=children.config_maps,
        last_words=_last_words(uid, children.gone_pods),
        progress=progress,
        stepped_at=stepped_at,
        refusals=children.refusals,
    )


def _last_words(uid: str, gone_pods: Iterable[PodFacts]) -> tuple[StageReport, ...]:
    return tuple(p.pod.report for p in gone_pods if p.job_uid == uid and p.pod.report is not None)


def _jobs(uid: str, children: Children, pods: list[PodFacts]) -> Iterator[ObservedJob]:
    for raw in children.jobs:
        identity = Identity.of(raw)
        if identity is not None and identity.job_uid == uid:
            yield _job(raw, identity, pods, children.failed_creates)


def _job(
    raw: Raw, identity: Identity, pods: list[PodFacts], failed_creates: Iterable[FailedCreate]
) -> ObservedJob:
    metadata, status = part(raw, "metadata"), part(raw, "status")
    condition, told = _condition(status)
    mine = [facts for facts in pods if facts.child == metadata["name"]]
    return ObservedJob(
        name=str(metadata["name"]),
        stage=identity.stage,
        attempt=identity.attempt,
        created_at=datetime.fromisoformat(metadata["creationTimestamp"]),
        completions=int(part(raw, "spec").get("completions") or 1),
        generation=_generation(metadata),
        condition=condition,
        reason=str(told.get("reason") or ""),
        message=str(told.get("message") or ""),
        active=int(status.get("active") or 0),
        succeeded=int(status.get("succeeded") or 0),
        failed=int(status.get("failed") or 0),
        finished_at=_finished_at(status, condition, told),
        deleting=bool(metadata.get("deletionTimestamp")),
        pods=tuple(_pods(mine)),
        pods_refused=_refused(str(metadata.get("uid", "")), mine, failed_creates),
    )


def _condition(status: Raw) -> tuple[JobCondition | None, Raw]:
    """The condition that counts of those that hold, and what it tells."""
    holding = {
        entry.get("type"): entry for entry in entries(status, "conditions") if is_true(entry)
    }
    return next(((name, holding[name]) for name in _CONDITIONS if name in holding), (None, {}))


def _generation(metadata: Raw) -> int | None:
    text = str(part(metadata, "annotations").get(GENERATION_ANNOTATION, ""))
    return int(text) if text.isdecimal() else None


def _pods(facts: list[PodFacts]) -> list[ObservedPod]:
    return sorted((f.pod for f in facts), key=lambda pod: (pod.index, pod.name))


def _refused(child_uid: str, pods: list[PodFacts], events: Iterable[FailedCreate]) -> str:
    """What was last said, unless a pod was created since."""
    mine = [event for event in events if event.child_uid == child_uid]
    last = max(mine, key=lambda event: event.at, default=None)
    if last is None or any(facts.created_at > last.at for facts in pods):
        return ""
    return last.message


def _finished_at(status: Raw, condition: JobCondition | None, told: Raw) -> datetime | None:
    if condition not in ("Failed", "Complete"):
        return None
    return moment(status.get("completionTime") or told.get("lastTransitionTime"))


def _was_begun(job: PretrainJob, facts: PodFacts) -> bool:
    """Whether status knows the attempt: else its Job is not gone, but has not been seen yet."""
    stage = next((s for s in job.status.stages if s.name == facts.stage), None)
    if stage is None:
        return False
    return facts.attempt < stage.attempt or stage.state != "Pending"


def _gone_jobs(orphans: list[PodFacts]) -> Iterator[ObservedJob]:
    """Jobs that were deleted while pods of theirs live on."""
    for child in sorted({facts.child for facts in orphans}):
        mine = [facts for facts in orphans if facts.child == child]
        yield ObservedJob(
            name=child,
            stage=mine[0].stage,
            attempt=mine[0].attempt,
            created_at=min(facts.created_at for facts in mine),
            completions=len({facts.pod.index for facts in mine}),
            deleting=True,
            pods=tuple(_pods(mine)),
        )


def _order(child: ObservedJob) -> tuple[datetime, str]:
    return child.created_at, child.name
