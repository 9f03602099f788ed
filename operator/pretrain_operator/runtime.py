"""The operator's process: serve probes, stand by for the Lease, lead, and let go in the end."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass

import aiohttp

from pretrain_operator.cluster import Cluster
from pretrain_operator.credentials import Access, load_access
from pretrain_operator.health import Answers, Heart, serving
from pretrain_operator.leader import Fence, Leader
from pretrain_operator.leading import Leading, Surroundings, utc_now
from pretrain_operator.metrics import OperatorMetrics
from pretrain_operator.progress import ASKED_AT_ONCE
from pretrain_operator.settings import OperatorSettings
from pretrain_operator.stopping import signal_catcher, unless

SILENCE_SECONDS = 180.0
"""Shortest silence after which the process counts as stuck."""

MISSED_RESYNCS = 3
"""Resyncs that may be missed before it does."""

_log = logging.getLogger(__name__)


async def run(settings: OperatorSettings, *, version: str) -> None:
    """Be one replica of the operator until SIGTERM or SIGINT.

    Raises CredentialsError without an API server, LeaseLostError when another replica has taken
    over, and whatever else must end the process.
    """
    _log.info("pretrain-operator %s: %s", version, settings.model_dump_json(exclude_unset=True))
    stop = asyncio.Event()
    catch_signals = signal_catcher(stop)
    catch_signals()
    async with AsyncExitStack() as stack:
        access = await load_access(settings.kubeconfig)
        replica = await _build_replica(access, settings, version, catch_signals, stack)
        answers = Answers(
            liveness=replica.heart.problem,
            readiness=replica.problem,
            metrics=replica.metrics.render,
        )
        await stack.enter_async_context(serving(answers, port=settings.http_port))
        _log.info("probes and metrics are served on port %d", settings.http_port)
        await replica.run(stop)
    _log.info("stopped")


@dataclass
class Replica:
    """One process of the operator, leading or not."""

    leader: Leader
    leading: Leading
    metrics: OperatorMetrics
    heart: Heart
    leads: bool = False

    def problem(self) -> str:
        """Why it is not ready; one that stands by is, as long as it sees the Lease."""
        if self.leads:
            return self.leading.problem
        silence = time.monotonic() - self.leader.seen_at
        return "" if silence < self.leader.fence.seconds else "the Lease was not read for a while"

    async def run(self, stop: asyncio.Event) -> None:
        """Stand by, lead, and release the Lease."""
        if not await unless(stop, self.leader.acquire()):
            return
        self._lead(True)
        try:
            async with asyncio.TaskGroup() as group:
                keeping = group.create_task(self.leader.keep())
                await self.leading.run(stop)
                keeping.cancel()
        finally:
            self._lead(False)
            await self.leader.release()

    def _lead(self, leads: bool) -> None:
        self.leads = leads
        self.metrics.set_leader(leads)


async def _build_replica(
    access: Access,
    settings: OperatorSettings,
    version: str,
    catch_signals: Callable[[], None],
    stack: AsyncExitStack,
) -> Replica:
    metrics = OperatorMetrics(version=version)
    session = await stack.enter_async_context(access.open_session(metrics.api_request))
    pods = await stack.enter_async_context(
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=ASKED_AT_ONCE))
    )
    heart = Heart(
        seconds=time.monotonic,
        limit=max(SILENCE_SECONDS, MISSED_RESYNCS * settings.resync_seconds),
    )
    fence = Fence(seconds=settings.lease_seconds, monotonic=time.monotonic)
    cluster = Cluster(session, access.server, may_write=fence.check)
    leader = Leader(
        cluster=cluster,
        namespace=settings.pod_namespace,
        name=settings.lease_name,
        identity=f"{settings.pod_name}_{uuid.uuid4().hex[:8]}",
        fence=fence,
        on_look=heart.beat,
        clock=utc_now,
    )
    leading = Leading(
        Surroundings(
            access=access,
            cluster=cluster,
            pods=pods,
            settings=settings,
            metrics=metrics,
            heart=heart,
            catch_signals=catch_signals,
        )
    )
    return Replica(leader=leader, leading=leading, metrics=metrics, heart=heart)
