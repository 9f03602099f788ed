"""The process that writes a rank's checkpoints: `python -m pretrain_jobs.checkpoint.writer`.

Arguments are descriptors and the id of the process that trains, whose death is its own. It
imports no torch, so it is up in a moment and small.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from multiprocessing.connection import Connection

from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.checkpoint.buffers import MappedBuffer
from pretrain_jobs.checkpoint.orders import DiscardOrder, GiveUp, LookUpOrder, Order, SaveOrder
from pretrain_jobs.checkpoint.writing import RankWriter
from pretrain_jobs.storage import open_store
from pretrain_jobs.train.lifeline import die_with_parent

NICENESS = 15
"""Of the thread that writes beside training: a contended core is training's but for a thirtieth."""

_log = logging.getLogger(__name__)


def main(arguments: list[str]) -> int:
    """Carry out orders until nobody is there to give any; 0."""
    connection_number, buffer_number, rank_process = map(int, arguments)
    die_with_parent(rank_process)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    connection: Connection = Connection(connection_number)
    storage, uri = connection.recv()
    serve(connection, MappedBuffer(buffer_number), storage, uri, rank_process=rank_process)
    return 0


def serve(
    connection: Connection,
    buffer: MappedBuffer,
    storage: StorageSpec,
    uri: str | None,
    *,
    rank_process: int,
) -> None:
    """Answer the orders that come through a connection, one after the other, to its end."""
    writer = RankWriter(
        open_store(storage, uri), clock=lambda: datetime.now(UTC), rank_process=rank_process
    )
    beside = ThreadPoolExecutor(1, initializer=yield_to_training)
    with beside, suppress(EOFError, ConnectionError):
        while True:
            order: Order | GiveUp = connection.recv()
            match order:
                case SaveOrder():
                    memory, told = buffer.memory(order.size), partial(_gave_up, connection)
                    if order.urgent:
                        outcome = writer.save(order, memory, told)
                    else:
                        outcome = beside.submit(writer.save, order, memory, told).result()
                    connection.send(outcome)
                case LookUpOrder():
                    connection.send(writer.look_up(order))
                case DiscardOrder():
                    writer.discard(order)
                case GiveUp():
                    _log.debug("step %d is not waited for any more", order.key.step)


def _gave_up(connection: Connection, seconds: float) -> bool:
    """Whether the process that trains says so within so many seconds; EOFError if it is gone."""
    if not connection.poll(seconds):
        return False
    connection.recv()
    return True


def yield_to_training() -> None:
    """Lower this thread's priority; Linux alone has one for each thread.

    Where all of training runs at a lower one already it stays, as only root may raise it.
    """
    if sys.platform == "linux":
        thread = threading.get_native_id()
        own = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, max(own, NICENESS))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
