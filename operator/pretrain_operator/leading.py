"""Everything that only the leader does, put together and run as one group of tasks.

What one task cannot bear ends all of them, and with them the process, which a kubelet starts anew.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp
import kopf

from pretrain_operator.addresses import PRETRAIN_JOBS
from pretrain_operator.audit import Audit
from pretrain_operator.cluster import Cluster
from pretrain_operator.credentials import Access
from pretrain_operator.engine import WORKERS, Engine
from pretrain_operator.errors import ApiError, ApiUnreachableError, OperatorError
from pretrain_operator.handlers import build_registry, build_settings
from pretrain_operator.health import Heart
from pretrain_operator.metrics import OperatorMetrics
from pretrain_operator.observe import JobKey
from pretrain_operator.progress import ProgressPoller
from pretrain_operator.reconcile import Reconciler
from pretrain_operator.settings import OperatorSettings
from pretrain_operator.stopping import unless
from pretrain_operator.store import Store
from pretrain_operator.watch import Watch, watches_of_children
from pretrain_operator.workqueue import WorkQueue

CRD_SECONDS = 2.0
"""How often a missing CRD is looked for."""

DRAIN_SECONDS = 5.0
"""How long work that has begun may go on when the process ends."""

_log = logging.getLogger(__name__)


def utc_now() -> datetime:
    """The time in whole seconds, as the API server's own timestamps are."""
    return datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Surroundings:
    """What the leader works with.

    `pods` is a session for requests to pods. `catch_signals` takes the process's signals back
    from kopf, which takes them for itself.
    """

    access: Access
    cluster: Cluster
    pods: aiohttp.ClientSession
    settings: OperatorSettings
    metrics: OperatorMetrics
    heart: Heart
    catch_signals: Callable[[], None]


class Leading:
    """The leader's work, from the first list to the last turn."""

    def __init__(self, given: Surroundings) -> None:
        self._given = given
        self._problem = "the API server was not asked for the CRD yet"
        self._queue = WorkQueue(is_new=self._is_new)
        self._engine = Engine(
            queue=self._queue, metrics=given.metrics, heart=given.heart, seconds=time.monotonic
        )
        self._store = Store(
            job_changed=self._engine.wake,
            children_changed=self._engine.wake_soon,
            children_moved=self._engine.wake_later,
        )
        self._namespaces: tuple[str | None, ...] = given.settings.namespaces or (None,)
        self._audit = Audit(given.cluster, self._store, self._namespaces)
        self._poller = self._build_poller()
        self._reconciler = self._build_reconciler()

    @property
    def problem(self) -> str:
        """Why it is not ready; empty when it is."""
        if not self._problem and not self._audit.has_heard_all:
            return "PretrainJobs are not listed yet"
        return self._problem

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set, then bring what has begun to its end."""
        if not await unless(stop, self._wait_for_crd()):
            return
        watches = watches_of_children(self._given.cluster, self._store, self._namespaces)
        async with asyncio.TaskGroup() as group:
            loops = [group.create_task(watch.run()) for watch in watches]
            loops += [group.create_task(run()) for run in (self._watch, self._poll, self._resync)]
            if await unless(stop, self._wait_for_lists(watches)):
                await self._work(stop)
            for loop in loops:
                loop.cancel()

    async def _work(self, stop: asyncio.Event) -> None:
        """Work on every job from when it is known; its children are known by then.

        Workers end with what they are at; one that takes too long is cut off.
        """
        self._engine.begin(self._store.jobs.groups)
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            work = self._reconciler.reconcile
            workers = [group.create_task(self._engine.work(work)) for _ in range(WORKERS)]
            await stop.wait()
            self._queue.close()
            for worker in workers:
                loop.call_later(DRAIN_SECONDS, worker.cancel)

    async def _watch(self) -> None:
        """Run kopf, which ends only with an error."""
        registry = build_registry(self._store, login=self._login)
        namespaces = self._given.settings.namespaces
        others = asyncio.all_tasks()
        tasks = await kopf.spawn_tasks(
            registry=registry,
            settings=build_settings(),
            standalone=True,
            clusterwide=not namespaces,
            namespaces=namespaces,
        )
        self._given.catch_signals()
        await kopf.run_tasks(tasks, ignored=others)
        raise OperatorError("kopf has ended though nobody asked it to")

    async def _poll(self) -> None:
        while True:
            await self._poller.poll()
            await asyncio.sleep(self._given.settings.poll_seconds)

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self._given.settings.resync_seconds)
            await self._audit.run()
            self._engine.resync(self._store.jobs.groups)

    async def _wait_for_crd(self) -> None:
        """Wait for what kopf looks for only once, at its start."""
        told = ""
        while True:
            self._given.heart.beat()
            try:
                if await self._given.cluster.serves(PRETRAIN_JOBS):
                    return
                self._problem = f"the API server serves no {PRETRAIN_JOBS.plural}: install the CRD"
            except (ApiError, ApiUnreachableError) as error:
                self._problem = str(error)
            if self._problem != told:
                told = self._problem
                _log.warning("waiting: %s", told)
            await asyncio.sleep(CRD_SECONDS)

    async def _wait_for_lists(self, watches: list[Watch]) -> None:
        for watch in watches:
            self._problem = f"{watch.resource.plural} are not listed yet"
            await watch.listed.wait()
        self._problem = ""

    async def _login(self) -> kopf.AiohttpSession:
        session = self._given.access.open_session(self._note_answer)
        return kopf.AiohttpSession(server=self._given.access.server, aiohttp_session=session)

    def _note_answer(self, verb: str, resource: str, code: int) -> None:
        self._given.metrics.api_request(verb, resource, code)
        self._audit.note(verb, resource, code)

    def _is_new(self, key: JobKey) -> bool:
        known = self._store.job(key)
        return known is None or not known.stored

    def _began_at(self, key: JobKey, attempt: int) -> int:
        """Step at which a training attempt began; 0 while status has not told of it."""
        known = self._store.job(key)
        status = known.readable_status if known else None
        train = next((s for s in status.stages if s.name == "train"), None) if status else None
        if status is None or train is None or train.attempt != attempt:
            return 0
        return status.attempt_start_step

    def _build_poller(self) -> ProgressPoller:
        return ProgressPoller(
            session=self._given.pods,
            pods=self._store.pods,
            began_at=self._began_at,
            wake=self._engine.wake,
            on_poll=self._given.metrics.progress_poll,
            clock=utc_now,
        )

    def _build_reconciler(self) -> Reconciler:
        return Reconciler(
            store=self._store,
            cluster=self._given.cluster,
            follower=self._poller,
            metrics=self._given.metrics,
            settings=self._given.settings.for_plan(),
            figures_seconds=self._given.settings.poll_seconds,
            instance=self._given.settings.pod_name,
            clock=utc_now,
            monotonic=time.monotonic,
        )
