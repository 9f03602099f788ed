"""Ranks as threads of this process: for tests of what ranks do together without a process group."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier
from typing import TypeVar

T = TypeVar("T")

PATIENCE_SECONDS = 60.0


@dataclass
class Meeting:
    """Where the ranks of one group exchange values."""

    world_size: int
    barrier: Barrier = field(init=False)
    values: list[object] = field(init=False)

    def __post_init__(self) -> None:
        self.barrier = Barrier(self.world_size, timeout=PATIENCE_SECONDS)
        self.values = [None] * self.world_size


@dataclass(frozen=True)
class ThreadRank:
    """One rank, as the checkpoint package's Group."""

    rank: int
    meeting: Meeting

    @property
    def world_size(self) -> int:
        return self.meeting.world_size

    def meet(self) -> None:
        self.meeting.barrier.wait()

    def gather(self, value: T) -> list[T]:
        self.meeting.values[self.rank] = value
        self.meeting.barrier.wait()
        told = list(self.meeting.values)
        self.meeting.barrier.wait()
        return told  # type: ignore[return-value]

    def broadcast(self, value: T) -> T:
        return self.gather(value)[0]


def run_threads(function: Callable[[ThreadRank], T], world_size: int) -> list[T]:
    """Call `function(rank)` in a thread for each rank; a rank's error breaks the others' waits."""
    meeting = Meeting(world_size)

    def call(rank: int) -> T:
        try:
            return function(ThreadRank(rank, meeting))
        except BaseException:
            meeting.barrier.abort()
            raise

    with ThreadPoolExecutor(world_size) as pool:
        futures = [pool.submit(call, rank) for rank in range(world_size)]
        return [future.result() for future in futures]
