"""Ranks whose saves are hindered from inside, and what became of each save, beside kills.

Their storage is hindered by others: see `s3_faults`.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from pretrain_api.reports import StageResult
from pretrain_jobs.train.keeper import Keeper
from pretrain_jobs.train.ledger import Ledger
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.saving import Saving

from pretrain_testing.fork_server import preload
from pretrain_testing.killed_ranks import train_and_die, writers_of
from pretrain_testing.kills import Kill
from pretrain_testing.training import Bed

ROOM_BYTES = 1000
"""How large a file may be on a disk that is full."""

preload("pretrain_testing.hindered_ranks")


def train_hindered(
    ranks: Ranks,
    config_path: Path,
    ledger: Path,
    kills: Sequence[Kill],
    *,
    environment: Mapping[str, str],
    full_at: int,
) -> StageResult:
    """Train one rank; in the save of step `full_at` rank 1's writer has no room on its disk."""
    os.environ |= environment
    if ranks.rank == 0:
        _tell_saves(config_path.parent / "saves.jsonl")
    if ranks.rank == 1:
        _fill_the_disk(full_at)
    return train_and_die(ranks, config_path, ledger, kills)


def failures(bed: Bed, *, attempt: int) -> dict[int, str]:
    """Why each save of an attempt came to no commit, by its step; nothing for one that did."""
    lines = (bed.directory / f"attempt-{attempt}" / "saves.jsonl").read_text().splitlines()
    told = (json.loads(line) for line in lines)
    return {one["step"]: one["failure"] for one in told}


def train_and_stand_still(ranks: Ranks, config_path: Path, ledger: Path, step: int) -> StageResult:
    """Train one rank, which stops in a step, and its writer in the save begun before it."""
    keepers: Any = Keeper
    ledgers: Any = Ledger
    begin, write = keepers.begin, ledgers.write

    def begin_without_writer(keeper: Any, progress: Any, *arguments: Any, **options: Any) -> None:
        if progress.step == step - 1:
            for writer in writers_of(psutil.Process()):
                writer.suspend()
        begin(keeper, progress, *arguments, **options)

    def write_and_stop(own: Any, number: int, *arguments: Any) -> None:
        write(own, number, *arguments)
        if number == step:
            os.kill(os.getpid(), signal.SIGSTOP)

    keepers.begin = begin_without_writer
    ledgers.write = write_and_stop
    return train_and_die(ranks, config_path, ledger, ())


def let_go_on(process: psutil.Process) -> None:
    """Have a rank that stands still go on, its writer first."""
    for writer in writers_of(process):
        writer.resume()
    process.resume()


def _tell_saves(path: Path) -> None:
    savings: Any = Saving
    tell = savings._tell

    def tell_and_note(saving: Any, result: Any) -> None:
        with path.open("a") as stream:
            stream.write(json.dumps({"step": result.step, "failure": result.failure}) + "\n")
        tell(saving, result)

    savings._tell = tell_and_note


def _fill_the_disk(step: int) -> None:
    """Let this rank's writer write next to nothing in one save, and as before in the next."""
    keepers: Any = Keeper
    begin = keepers.begin

    def begin_with_little_room(keeper: Any, progress: Any, *arguments: Any, **options: Any) -> None:
        keeper.saver.writer.start()
        for writer in writers_of(psutil.Process()):
            _, hard = writer.rlimit(psutil.RLIMIT_FSIZE)
            room = ROOM_BYTES if progress.step == step else hard
            writer.rlimit(psutil.RLIMIT_FSIZE, (room, hard))
        begin(keeper, progress, *arguments, **options)

    keepers.begin = begin_with_little_room
