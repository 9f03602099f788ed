"""The process group: started with our timeouts, and spoken to in a few collectives of our own.

DeepSpeed's own groups are made inside it. What a lost peer looks like is known here alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d

from pretrain_jobs.errors import InfrastructureError, UserError

T = TypeVar("T")

_LOST_PEER = (
    "Connection closed by peer",
    "Connection reset by peer",
    "Broken pipe",
    "Timed out waiting",
    "Application timeout caused pair closure",
    "gloo/transport",
    "monitoredBarrier",
    "NCCL",
)
"""What gloo, NCCL and the store say when another rank is gone or does not answer."""


@dataclass(frozen=True)
class Place:
    """A rank's place in the gang, as torchrun tells it."""

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Place:
        """Read RANK, LOCAL_RANK and WORLD_SIZE; UserError when torchrun did not set them."""
        try:
            return cls(
                rank=int(environment["RANK"]),
                local_rank=int(environment["LOCAL_RANK"]),
                world_size=int(environment["WORLD_SIZE"]),
            )
        except (KeyError, ValueError) as error:
            raise UserError(
                f"the environment lacks torchrun's {error}: start training with "
                "`python -m pretrain_jobs train`, which starts the ranks"
            ) from error


@dataclass(frozen=True)
class Ranks:
    """The ranks of this attempt. Every method but the properties is a collective.

    `patience` is how long they wait to meet, the group's own timeout if None.
    """

    place: Place
    device: torch.device
    patience: timedelta | None = None

    @property
    def rank(self) -> int:
        """The number of this rank, from 0."""
        return self.place.rank

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self.place.world_size

    def sum(self, values: Sequence[float]) -> list[float]:
        """Sums over the ranks, in float64, so that counts below 2**53 are exact."""
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        sums: list[float] = tensor.tolist()
        return sums

    def meet(self) -> None:
        """Wait for every rank. Where gloo is spoken, those that do not come are named."""
        if dist.get_backend() == dist.Backend.GLOO:
            dist.monitored_barrier(timeout=self.patience, wait_all_ranks=True)

    def gather(self, value: T) -> list[T]:
        """Every rank's value, by rank."""
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value)
        return values

    def broadcast(self, value: T) -> T:
        """Rank 0's value."""
        values = [value]
        dist.broadcast_object_list(values, src=0)
        return values[0]


@contextmanager
def process_group(place: Place, *, device: str, timeout_seconds: int) -> Iterator[Ranks]:
    """Join the group; InfrastructureError for whatever a lost peer makes the block raise.

    Groups that DeepSpeed makes take torch's default timeout, so that is set too: a peer that was
    stopped, not killed, would be noticed after half an hour otherwise.
    """
    timeout = timedelta(seconds=timeout_seconds)
    c10d.default_pg_timeout = timeout
    own = torch.device(device, place.local_rank) if device == "cuda" else torch.device("cpu")
    if own.type == "cuda":
        torch.cuda.set_device(own)
    try:
        dist.init_process_group("nccl" if own.type == "cuda" else "gloo", timeout=timeout)
        yield Ranks(place, own)
        dist.destroy_process_group()
    except RuntimeError as error:
        if not _is_lost_peer(error):
            raise
        raise InfrastructureError(
            f"another rank was lost or did not answer within {timeout_seconds} s: "
            f"{_first_line(error)}"
        ) from error


def _is_lost_peer(error: RuntimeError) -> bool:
    return isinstance(error, dist.DistError) or any(text in str(error) for text in _LOST_PEER)


def _first_line(error: RuntimeError) -> str:
    return str(error).strip().partition("\n")[0]
