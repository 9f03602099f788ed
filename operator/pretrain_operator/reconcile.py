"""One job, level-triggered: observe, plan, apply children, write status, post events, delete.

Nothing is remembered from one time to the next but refusals and when status was last written: a
crash at any point is made good by doing it again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from pretrain_api.errors import InvalidObjectError
from pretrain_api.job import PretrainJob
from pretrain_api.status import PretrainJobStatus

from pretrain_operator.applying import Applier
from pretrain_operator.cluster import Cluster
from pretrain_operator.errors import ApiError, ApiUnreachableError
from pretrain_operator.event_objects import build_event
from pretrain_operator.known_job import KnownJob
from pretrain_operator.log import job_logger
from pretrain_operator.metrics import OperatorMetrics
from pretrain_operator.observe import JobKey, observed_of
from pretrain_operator.observed import ChildRef, Event, Refusal, Settings
from pretrain_operator.plan import Plan, plan
from pretrain_operator.progress import Followed
from pretrain_operator.status_patch import (
    Json,
    merge_patch,
    tells_news,
    unstored_fields,
    wire_status,
)
from pretrain_operator.store import Store
from pretrain_operator.unreadable import status_of_unreadable

ROUNDS = 8
"""Plans in a row that apply something; a stage needs one, and every cached stage none."""

_log = logging.getLogger(__name__)


class Follower(Protocol):
    """Knows how far running stages are."""

    def of(self, uid: str, /) -> Followed:
        """What the pods of the job with a uid told last."""

    def forget(self, uid: str, /) -> None:
        """Drop what is known of a job that is gone."""


@dataclass
class _Memory:
    """What is remembered of a job."""

    uid: str
    written_at: float
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class _Decision:
    """The last plan of a turn, with the events of all plans of that turn."""

    plan: Plan
    events: tuple[Event, ...]


@dataclass
class Reconciler:
    """Brings jobs nearer to their end; one call at a time for each key.

    `clock` gives the time in UTC, `monotonic` seconds. `figures_seconds` is how long changes of
    mere figures may wait, so that they are written together. `instance` names this replica.
    """

    store: Store
    cluster: Cluster
    follower: Follower
    metrics: OperatorMetrics
    settings: Settings
    figures_seconds: float
    instance: str
    clock: Callable[[], datetime]
    monotonic: Callable[[], float]
    _memories: dict[JobKey, _Memory] = field(default_factory=dict, init=False)
    _started_at: float = field(init=False)
    _crd_is_older: bool = field(default=False, init=False)
    _crd_is_newer: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._started_at = self.monotonic()

    async def reconcile(self, key: JobKey) -> float | None:
        """Do what there is to do now; the seconds until time alone makes more of it.

        Raises ApiError, ApiUnreachableError (both: try again later) and LeaseLostError.
        """
        known = self.store.job(key)
        if known is None:
            self._forget(key)
            return None
        if known.is_foreign or known.is_deleting:
            return None
        try:
            return await self._reconcile(known)
        except ApiError as error:
            if error.is_missing or error.namespace_ends:
                self.store.jobs.note_deleted(known.uid)
                self._forget(key)
                return None
            raise

    async def _reconcile(self, known: KnownJob) -> float | None:
        now = self.clock()
        memory = self._memory(known)
        try:
            job = known.job
        except InvalidObjectError as error:
            return await self._refuse(known, error, now)
        self._note_unknown(known.unknown_fields)
        decision = await self._decide(known, job, memory, now)
        if decision is None:
            return 1.0
        if decision.plan.expired:
            namespace, name = known.key
            await self.cluster.delete_job(namespace=namespace, name=name, uid=known.uid)
            return None
        return await self._carry_out(known, job, decision, memory)

    async def _refuse(
        self, known: KnownJob, error: InvalidObjectError, now: datetime
    ) -> float | None:
        before = known.readable_status
        status = status_of_unreadable(before, error, generation=known.generation, now=now)
        wanted = wire_status(status)
        patch = merge_patch(known.stored, wanted)
        if patch and status != before:
            await self._write_status(known, status, patch=patch, wanted=wanted)
        return None

    async def _decide(
        self, known: KnownJob, job: PretrainJob, memory: _Memory, now: datetime
    ) -> _Decision | None:
        """Plan and apply until there is nothing to apply; None when the cache lags behind.

        So one status is written for all that a turn began, and children that a turn applied are
        seen by its own next plan.
        """
        applier = Applier(self.cluster, self.store, generation=known.generation, now=now)
        events: tuple[Event, ...] = ()
        for _ in range(ROUNDS):
            made = self._plan(known, job, memory, now)
            if not made.apply:
                return _Decision(made, (*events, *made.events))
            outcome = await applier.apply(made.apply, memory.refusals)
            memory.refusals = outcome.refusals
            if outcome.unseen:
                return None
            if not outcome.refused:
                events = (*events, *made.events)
                job = job.model_copy(update={"status": made.status})
        return None

    def _plan(self, known: KnownJob, job: PretrainJob, memory: _Memory, now: datetime) -> Plan:
        followed = self.follower.of(known.uid)
        observed = observed_of(
            job,
            self.store.children_of(known, memory.refusals),
            progress=followed.progress,
            stepped_at=followed.stepped_at,
        )
        return plan(job, observed, now, self.settings)

    async def _carry_out(
        self, known: KnownJob, job: PretrainJob, decision: _Decision, memory: _Memory
    ) -> float | None:
        made = decision.plan
        wanted = wire_status(made.status)
        patch = merge_patch(known.stored, wanted)
        urgent = decision.events or made.delete or tells_news(job.status, made.status)
        wait = memory.written_at + self.figures_seconds - self.monotonic()
        if patch and not urgent and wait > 0:
            return _sooner(wait, made.requeue_after)
        if patch:
            memory.written_at = self.monotonic()
            known = await self._write_status(known, made.status, patch=patch, wanted=wanted)
        self.metrics.set_job(job.model_copy(update={"status": made.status}))
        await self._post(known, decision.events)
        await self._delete(known, made.delete)
        return made.requeue_after

    async def _write_status(
        self,
        known: KnownJob,
        status: PretrainJobStatus,
        *,
        patch: dict[str, Json],
        wanted: dict[str, Json],
    ) -> KnownJob:
        """Write a patch; whatever is stored of it, `wanted` is not written again."""
        namespace, name = known.key
        answer = await self.cluster.patch_status(
            namespace=namespace, name=name, version=known.version, status=patch
        )
        self._compare_crd(unstored_fields(patch, answer.get("status") or {}))
        self.store.jobs.put({**answer, "status": wanted}, quietly=True)
        written = self.store.job(known.key) or known
        written.adopt(known, status)
        return written

    async def _post(self, known: KnownJob, events: tuple[Event, ...]) -> None:
        """Events are lost rather than repeated."""
        for event in events:
            made = build_event(event, about=known, now=self.clock(), instance=self.instance)
            job_logger(_log, known.key).info("%s: %s", event.reason, event.message)
            try:
                await self.cluster.post_event(made)
            except (ApiError, ApiUnreachableError) as error:
                job_logger(_log, known.key).warning("event %s is lost: %s", event.reason, error)

    async def _delete(self, known: KnownJob, children: tuple[ChildRef, ...]) -> None:
        for child in children:
            uid = self.store.uid_of_child(known.key, child)
            if uid is not None:
                await self.cluster.delete(child, namespace=known.key[0], uid=uid)
                self.store.note_deleted(child.kind, uid)

    def _memory(self, known: KnownJob) -> _Memory:
        memory = self._memories.get(known.key)
        if memory is None or memory.uid != known.uid:
            memory = _Memory(uid=known.uid, written_at=self._started_at)
            self._memories[known.key] = memory
        return memory

    def _forget(self, key: JobKey) -> None:
        memory = self._memories.pop(key, None)
        if memory is not None:
            self.follower.forget(memory.uid)
        self.metrics.forget_job(*key)

    def _compare_crd(self, unstored: list[str]) -> None:
        if unstored and not self._crd_is_older:
            self._crd_is_older = True
            names = ", ".join(f"status.{name}" for name in unstored)
            _log.warning("the CRD is older than this operator and drops %s; upgrade it", names)

    def _note_unknown(self, fields: tuple[str, ...]) -> None:
        if fields and not self._crd_is_newer:
            self._crd_is_newer = True
            _log.warning(
                "the CRD is newer than this operator, which runs jobs without %s; upgrade it",
                ", ".join(fields),
            )


def _sooner(seconds: float, other: float | None) -> float:
    return seconds if other is None else min(seconds, other)
