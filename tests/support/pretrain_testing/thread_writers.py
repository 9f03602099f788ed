"""A checkpoint writer without a process: for tests of what ranks do together."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from threading import Event, Thread

from pretrain_jobs.checkpoint.buffers import HostBuffer
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.orders import DiscardOrder, LookUpOrder, Order, Outcome
from pretrain_jobs.checkpoint.writing import RankWriter
from pretrain_jobs.storage import ObjectStore


@dataclass
class ThreadWriter:
    """Carries out orders in a thread, which does not keep its process from ending."""

    store: ObjectStore
    buffer: HostBuffer = field(default_factory=HostBuffer)

    def __post_init__(self) -> None:
        self._orders: SimpleQueue[Order | None] = SimpleQueue()
        self._outcomes: SimpleQueue[Outcome] = SimpleQueue()
        self._given_up = Event()
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def start(self) -> None:
        """Nothing to be done: the thread runs."""

    def submit(self, order: Order) -> None:
        self._given_up.clear()
        self._orders.put(order)

    def outcome(self, seconds: float) -> Outcome | None:
        try:
            return self._outcomes.get(timeout=seconds) if seconds else self._outcomes.get_nowait()
        except Empty:
            return None

    def give_up(self, key: CheckpointKey) -> None:
        assert key
        self._given_up.set()

    def end(self) -> None:
        self._given_up.set()

    def close(self, *, tidily: bool) -> None:
        self._orders.put(None)
        if tidily:
            self._thread.join()
        self.buffer.close()

    def _serve(self) -> None:
        writer = RankWriter(self.store, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))
        while (order := self._orders.get()) is not None:
            match order:
                case DiscardOrder():
                    writer.discard(order)
                case LookUpOrder():
                    self._outcomes.put(writer.look_up(order))
                case _:
                    memory = self.buffer.memory
                    self._outcomes.put(writer.save(order, memory, self._given_up.wait))
