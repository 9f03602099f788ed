"""The process that writes a rank's checkpoints: `python -m pretrain_jobs.checkpoint.writer`.

Arguments are descriptors and the id of the process that trains, whose death is its own. It
imports no torch, so it is up in a moment and small, and it yields the processor to training.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from contextlib import suppress
from datetime import UTC, datetime
from multiprocessing.connection import Connection

from pretrain_api.spec.storage import StorageSpec

from pretrain_jobs.checkpoint.buffers import MappedBuffer
from pretrain_jobs.checkpoint.orders import DiscardOrder, GiveUp, LookUpOrder, Order, SaveOrder
from pretrain_jobs.checkpoint.writing import RankWriter
from pretrain_jobs.storage import open_store
from pretrain_jobs.train.lifeline import die_with_parent

NICENESS = 10
"""Added to the process's own: a contended core is training's for nine tenths."""

_log = logging.getLogger(__name__)


def main(arguments: list[str]) -> int:
    """Carry out orders until nobody is there to give any; 0."""
    connection_number, buffer_number, rank_process = map(int, arguments)
    die_with_parent(rank_process)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    os.nice(NICENESS)
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
    with suppress(EOFError, ConnectionError):
        while True:
            order: Order | GiveUp = connection.recv()
            match order:
                case SaveOrder():
                    memory = buffer.memory(order.size)
                    connection.send(writer.save(order, memory, lambda s: _gave_up(connection, s)))
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
