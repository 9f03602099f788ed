"""A checkpoint writer without a process: for tests of what ranks do together in threads."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Event

from pretrain_jobs.checkpoint.buffers import HostBuffer
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.orders import DiscardOrder, LookUpOrder, Order, Outcome
from pretrain_jobs.checkpoint.writing import RankWriter
from pretrain_jobs.storage import ObjectStore


@dataclass
class ThreadWriter:
    """Carries out orders in a thread of its own."""

    store: ObjectStore
    buffer: HostBuffer = field(default_factory=HostBuffer)
    given_up: Event = field(default_factory=Event)
    pool: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))
    saving: Future[Outcome] | None = None

    def __post_init__(self) -> None:
        self.writer = RankWriter(self.store, clock=lambda: datetime(2026, 1, 1, tzinfo=UTC))

    def start(self) -> None:
        pass

    def submit(self, order: Order) -> None:
        match order:
            case DiscardOrder():
                self.pool.submit(self.writer.discard, order)
            case LookUpOrder():
                self.saving = self.pool.submit(self.writer.look_up, order)
            case _:
                self.given_up.clear()
                memory = self.buffer.memory
                self.saving = self.pool.submit(self.writer.save, order, memory, self.given_up.wait)

    def outcome(self, seconds: float) -> Outcome | None:
        if self.saving is None:
            return None
        wait([self.saving], timeout=seconds)
        return self.saving.result() if self.saving.done() else None

    def give_up(self, key: CheckpointKey) -> None:
        assert key
        self.given_up.set()

    def close(self, *, tidily: bool) -> None:
        self.pool.shutdown(wait=tidily)
        self.buffer.close()
