"""Ranks of a process group as real processes that start in a moment.

A fork server imports torch, DeepSpeed and transformers once; each rank is forked from it. For
tests of what ranks do together; the launcher's own command is `training`'s subject.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from typing import Any

from pretrain_jobs.errors import StageError

from pretrain_testing.fork_server import CONTEXT, preload
from pretrain_testing.training import free_port

PATIENCE_SECONDS = 120.0
preload(
    "pretrain_jobs.train.main",
    "pretrain_testing.training_ranks",
    "transformers.models.bert.modeling_bert",
    "transformers.models.gpt2.modeling_gpt2",
)


@dataclass(frozen=True)
class RankResult:
    """How a rank ended: its value, or the error that it raised, or the signal that killed it."""

    value: Any = None
    error: str = ""
    cause: str = ""
    signal: int = 0


@dataclass(frozen=True)
class Gang:
    """Ranks that run."""

    processes: list[ForkServerProcess]
    receivers: list[Connection]

    def kill(self, *ranks: int) -> None:
        """End some ranks by SIGKILL."""
        for rank in ranks:
            self.processes[rank].kill()

    def results(self) -> list[RankResult]:
        """How each rank ended; waits for all."""
        results = [_receive(receiver) for receiver in self.receivers]
        for process in self.processes:
            process.join(PATIENCE_SECONDS)
        return [
            result or RankResult(signal=-(process.exitcode or 0))
            for result, process in zip(results, self.processes, strict=True)
        ]


def start_ranks(function: Callable[..., Any], world_size: int, *arguments: Any) -> Gang:
    """Call `function(ranks, *arguments)` on every rank; `function` must be importable."""
    port = free_port()
    gang = Gang([], [])
    for rank in range(world_size):
        receiver, sender = CONTEXT.Pipe(duplex=False)
        process = CONTEXT.Process(
            target=_main,
            args=(sender, function, arguments),
            kwargs={"rank": rank, "world_size": world_size, "port": port},
        )
        process.start()
        sender.close()
        gang.processes.append(process)
        gang.receivers.append(receiver)
    return gang


def run_ranks(function: Callable[..., Any], world_size: int, *arguments: Any) -> list[RankResult]:
    """Start the ranks and wait for their ends."""
    return start_ranks(function, world_size, *arguments).results()


def values_of(results: list[RankResult]) -> list[Any]:
    """The values of ranks that all came to their end."""
    for rank, result in enumerate(results):
        assert not result.error, f"rank {rank}: {result.error}"
        assert not result.signal, f"rank {rank} was killed by signal {result.signal}"
    return [result.value for result in results]


def rank_environment(rank: int, *, world_size: int, port: int) -> dict[str, str]:
    """What torchrun tells a rank of a gang on this machine."""
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "GLOO_SOCKET_IFNAME": "lo",
    }


def _receive(receiver: Connection) -> RankResult | None:
    assert wait([receiver], PATIENCE_SECONDS), "a rank hangs"
    try:
        result: RankResult = receiver.recv()
    except EOFError:
        return None
    return result


def _main(
    sender: Connection,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    *,
    rank: int,
    world_size: int,
    port: int,
) -> None:
    os.environ |= rank_environment(rank, world_size=world_size, port=port)
    import torch
    from pretrain_jobs.train.ranks import Place, process_group

    torch.set_num_threads(1)
    try:
        place = Place.from_environment(os.environ)
        with process_group(place, device="cpu", timeout_seconds=60) as ranks:
            sender.send(RankResult(value=function(ranks, *arguments)))
    except StageError as error:
        sender.send(RankResult(error=str(error), cause=error.cause.value))
    except BaseException:
        sender.send(RankResult(error=traceback.format_exc()))
        raise
