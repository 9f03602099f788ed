"""What the protocol needs of the ranks: that each hears what the others have to say."""

from __future__ import annotations

from typing import Protocol, TypeVar

T = TypeVar("T")


class Group(Protocol):
    """The ranks of an attempt. Every method is a collective: all ranks call it, in one order."""

    @property
    def rank(self) -> int:
        """The number of this rank, from 0."""

    @property
    def world_size(self) -> int:
        """The number of ranks."""

    def meet(self) -> None:
        """Wait until every rank is here; InfrastructureError tells which are not in time."""

    def gather(self, value: T) -> list[T]:
        """The value of every rank, by rank, on every rank."""

    def broadcast(self, value: T) -> T:
        """Rank 0's value, on every rank."""
