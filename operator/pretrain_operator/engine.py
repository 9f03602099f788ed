"""The workers that reconcile jobs as they wake, and the loops that wake them by the clock."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from pretrain_operator.errors import ApiError, ApiUnreachableError, LeaseLostError
from pretrain_operator.health import Heart
from pretrain_operator.log import job_logger
from pretrain_operator.metrics import OperatorMetrics, ReconcileError
from pretrain_operator.observe import JobKey
from pretrain_operator.workqueue import WorkQueue

WORKERS = 16
"""Jobs that are reconciled at the same time; each mostly waits for the API server."""

SETTLING_SECONDS = 0.2
"""How long changes of a job's children gather before the job is planned again."""

GATHERING_SECONDS = 10.0
"""How long changes gather that every job goes through; figures in status may wait as long."""

Reconcile = Callable[[JobKey], Awaitable[float | None]]

_log = logging.getLogger(__name__)


class Engine:
    """Wakes jobs and works on them, once all children that exist are known."""

    def __init__(
        self,
        *,
        queue: WorkQueue,
        metrics: OperatorMetrics,
        heart: Heart,
        seconds: Callable[[], float],
    ) -> None:
        self._queue = queue
        self._metrics = metrics
        self._heart = heart
        self._seconds = seconds
        self._begun = asyncio.Event()
        self._looked_at: set[JobKey] = set()

    def begin(self, keys: Iterable[JobKey]) -> None:
        """All children are known: begin with every job that is; others wake as they come."""
        self._begun.set()
        for key in keys:
            self._queue.add(key)

    def wake(self, key: JobKey) -> None:
        """A job has changed; before the beginning that goes without saying."""
        if self._begun.is_set():
            self._queue.add(key)

    def wake_soon(self, key: JobKey) -> None:
        """Children of a job have changed, and more of them may at once."""
        if self._begun.is_set():
            self._queue.add_after(key, SETTLING_SECONDS)

    def wake_later(self, key: JobKey) -> None:
        """Children of a job go their usual way, and what matters comes by itself."""
        if self._begun.is_set():
            self._queue.add_after(key, GATHERING_SECONDS)

    async def work(self, reconcile: Reconcile) -> None:
        """One worker, until the queue is closed; raises LeaseLostError."""
        await self._begun.wait()
        while (key := await self._queue.get()) is not None:
            try:
                await self._take_turn(key, reconcile)
            finally:
                self._queue.done(key)
                self._metrics.set_queue_depth(len(self._queue))

    def resync(self, keys: Iterable[JobKey]) -> None:
        """Wake jobs that had no turn since the last resync, should an event have been missed."""
        if self._queue.idle:
            self._metrics.note_resync()
            self._heart.beat()
        looked_at, self._looked_at = self._looked_at, set()
        for key in keys:
            if key not in looked_at:
                self.wake(key)

    async def _take_turn(self, key: JobKey, reconcile: Reconcile) -> None:
        started = self._seconds()
        try:
            seconds = await reconcile(key)
        except LeaseLostError:
            raise
        except ApiError as error:
            self._fail(key, error, "conflict" if error.is_conflict else "api")
        except ApiUnreachableError as error:
            self._fail(key, error, "api")
        except Exception as error:  # noqa: BLE001 - the top of a turn: one job must not stop all
            self._fail(key, error, "internal")
        else:
            self._queue.succeeded(key)
            if seconds is not None:
                self._queue.add_after(key, seconds)
        self._looked_at.add(key)
        self._metrics.observe_reconcile(self._seconds() - started)
        self._heart.beat()

    def _fail(self, key: JobKey, error: Exception, reason: ReconcileError) -> None:
        self._metrics.reconcile_error(reason)
        asked_for = error.retry_after if isinstance(error, ApiError) else 0.0
        delay = self._queue.retry(key, at_least=asked_for)
        log = job_logger(_log, key)
        if reason == "internal":
            log.error("reconciling failed, again in %g s", delay, exc_info=error)
        elif reason == "conflict":
            log.debug("the job has changed meanwhile: %s", error)
        else:
            log.warning("again in %g s: %s", delay, error)
