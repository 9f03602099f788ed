"""Which jobs a resync wakes."""

from __future__ import annotations

import asyncio

from pretrain_operator.engine import Engine
from pretrain_operator.health import Heart
from pretrain_operator.metrics import OperatorMetrics
from pretrain_operator.observe import JobKey
from pretrain_operator.workqueue import WorkQueue
from pretrain_testing.virtual_time import now, run_in_virtual_time

BUSY, IDLE = ("team", "busy"), ("team", "idle")


def test_a_resync_wakes_those_that_had_no_turn_since_the_one_before():
    turns: list[JobKey] = []

    async def take(key: JobKey) -> None:
        turns.append(key)

    async def scenario() -> None:
        queue = WorkQueue(is_new=lambda _: False)
        metrics, heart = OperatorMetrics(version="test"), Heart(seconds=now, limit=60)
        engine = Engine(queue=queue, metrics=metrics, heart=heart, seconds=now)
        work = asyncio.create_task(engine.work(take))
        engine.begin([BUSY, IDLE])
        await asyncio.sleep(1)
        for _ in range(2):
            engine.resync([BUSY, IDLE])
            engine.wake(BUSY)
            await asyncio.sleep(1)
        queue.close()
        await work

    run_in_virtual_time(scenario())
    assert turns == [BUSY, IDLE, BUSY, IDLE, BUSY]
