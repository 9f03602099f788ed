"""A job of bare ranks that die from inside at the moments of a plan, against one left alone.

Ranks are forked with torch imported and start in a moment (see `ranks`); each has its real writer.
A save is made beside the steps after it, and the next one waits for it, so that every save is made
and what an attempt comes by is always the same.
"""

from __future__ import annotations

import itertools
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import psutil
from pretrain_api.reports import LOCAL_CHECKPOINTS_ENV, StageResult
from pretrain_jobs.checkpoint.failpoints import FAILPOINT_ENV, Failpoints
from pretrain_jobs.checkpoint.writer_process import WriterProcess
from pretrain_jobs.train.keeper import Keeper
from pretrain_jobs.train.ledger import Ledger
from pretrain_jobs.train.ranks import Ranks
from pretrain_jobs.train.saving import Saving

from pretrain_testing.fork_server import preload
from pretrain_testing.kills import OF_RANK_0, Attempt, Done, Kill, Victim
from pretrain_testing.ledgers import begun_after
from pretrain_testing.ranks import Gang, RankResult, start_ranks, values_of
from pretrain_testing.training import RUN_SECONDS, Bed
from pretrain_testing.training_ranks import Manner, train_rank, write_output_to

EVERY_STEPS = 2
KILLS_EACH = 5
MAX_STEPS = 22
"""Of a job: with so many kills, and two saves for each of them, some are left for the last."""

VOLUME = "volume"
"""Directory of a job that stands for the volume on which it leaves its saves."""

WRITER = "pretrain_jobs.checkpoint.writer"
"""A word in the command line of a writer."""


def leaves_on_node(number: int) -> bool:
    """Whether a run's ranks leave their saves on the node: one in two."""
    return number % 2 == 1


preload("pretrain_testing.killed_ranks")


def job(root: Path, name: str, *, stage: int) -> Bed:
    """A job under `root` at a ZeRO stage, one of two architectures by turns."""
    return Bed(
        root,
        name=name,
        architecture="bert" if stage % 2 else "gpt2",
        training={"maxSteps": MAX_STEPS, "zero": {"stage": stage}},
        checkpoint={"everySteps": EVERY_STEPS, "keepLast": 1},
    )


def run_undisturbed(bed: Bed) -> None:
    """Run a job to its end, unless that was done before."""
    if not (bed.model_directory / "manifest.json").exists():
        values_of(_attempt(bed, (), train_and_die, number=0))


def run_killed(
    bed: Bed, attempts: Sequence[Attempt], main: Callable[..., StageResult] | None = None
) -> Iterator[list[Done]]:
    """Run a job through all kills to its end; what was done in each attempt, as it is done.

    Each attempt must resume from the newest step that is whole, and each kill must have happened.
    `main` is what ranks do in place of `train_and_die`, such as `die_beside_a_volume`.
    """
    plan = [*attempts]
    if not attempts or attempts[-1][-1].ends_the_attempt:
        plan.append(())
    for number, kills in enumerate(plan):
        newest = _whole_step(bed)
        known = begun_after(bed.ledger) if number else {}
        results = _attempt(bed, kills, main or train_and_die, number=number)
        begun = [step for one, step in begun_after(bed.ledger).items() if one not in known]
        assert begun in ([], [newest]), f"went on after {begun} and not after step {newest}"
        _check_deaths(bed.directory / f"attempt-{number}", kills, results)
        reached = _whole_step(bed)
        yield [Done(kill, reached if kill.ends_the_attempt else None) for kill in kills]


def _whole_step(bed: Bed) -> int:
    """The newest step that was committed, or is whole in the store or on the node, not given up.

    A start commits it. What is given up is one save: the attempt's other ones stay what they are.
    """
    given_up = {path.parts[-3:-1] for path in bed.checkpoints.glob("step-*/*/COMMIT")}
    shares = {
        (path.parts[-4], path.parts[-3], path.name)
        for place in (bed.checkpoints, bed.directory / VOLUME)
        for path in place.rglob("ranks/*.json")
        if path.parts[-4:-2] not in given_up
    }
    counts = Counter((step, attempt) for step, attempt, _ in shares)
    whole = [
        int(step.removeprefix("step-"))
        for (step, _), count in counts.items()
        if count == bed.processes
    ]
    return max([*whole, *bed.committed_steps()], default=0)


def _attempt(
    bed: Bed, kills: Attempt, main: Callable[..., StageResult], *, number: int
) -> list[RankResult]:
    gang = start_ranks(main, bed.processes, bed.write_config(number), bed.ledger, kills)
    try:
        if kills and kills[-1].victim == "all ranks":
            _await_the_first(gang)
            gang.kill(*range(bed.processes))
        return gang.results()
    finally:
        gang.kill(*range(bed.processes))


def _await_the_first(gang: Gang) -> None:
    sentinels = [process.sentinel for process in gang.processes]
    assert wait(sentinels, RUN_SECONDS), "no rank ends"


def _check_deaths(home: Path, kills: Attempt, results: Sequence[RankResult]) -> None:
    """Whether all died that should, and nothing else went wrong."""
    for kill in kills:
        if kill.victim == "one rank":
            assert results[kill.rank].signal == signal.SIGKILL, f"not carried out: {kill}"
        elif kill.victim == "all ranks":
            assert any(one.signal == signal.SIGKILL for one in results), f"not carried out: {kill}"
    for rank in range(len(results)):
        planned = [kill for kill in kills if kill.victim == "its writer" and kill.rank == rank]
        path = _ended_writers(home, rank)
        ended = path.read_text().count("\n") if path.exists() else 0
        assert ended >= len(planned), f"{ended} writers died of {[str(kill) for kill in planned]}"
    if not kills or not kills[-1].ends_the_attempt:
        values_of(list(results))


def train_and_die(
    ranks: Ranks, config_path: Path, ledger: Path, kills: Sequence[Kill]
) -> StageResult:
    """Train one rank to the end, or until one of the kills ends it."""
    home, rank = config_path.parent, ranks.rank
    write_output_to(home / f"output-{rank}")
    for kill in kills:
        if not kill.save and _dies(kill, rank):
            os.environ[FAILPOINT_ENV] = f"{kill.moment}:kill"
    save_beside_steps()
    _die_in_saves(kills, rank)
    _die_in_steps([kill for kill in kills if kill.moment == "training" and _dies(kill, rank)])
    _tell_ended_writers(_ended_writers(home, rank))
    return train_rank(ranks, config_path, ledger, Manner())


def die_beside_a_volume(
    ranks: Ranks, config_path: Path, ledger: Path, kills: Sequence[Kill]
) -> StageResult:
    """The same where saves are left on the node."""
    os.environ[LOCAL_CHECKPOINTS_ENV] = str(config_path.parents[1] / VOLUME)
    return train_and_die(ranks, config_path, ledger, kills)


def _dies(kill: Kill, rank: int) -> bool:
    """Whether a kill is carried out by this rank; the others of its gang are killed by that."""
    return rank == kill.rank or (kill.victim == "all ranks" and kill.moment not in OF_RANK_0)


def save_beside_steps() -> None:
    """Have each save that is due wait for the end of the one before, so that none is left out."""
    savings: Any = Saving
    begin = savings.begin

    def begin_after_the_last(saving: Any, progress: Any) -> None:
        if saving.keeper.saver.pending:
            saving._finish()
        begin(saving, progress)

    savings.begin = begin_after_the_last


def _die_in_saves(kills: Sequence[Kill], rank: int) -> None:
    """Arm the failpoint of each save, counted from 1, as it begins."""
    keepers: Any = Keeper
    begin = keepers.begin
    numbers = itertools.count(1)

    def begin_armed(keeper: Any, *arguments: Any, **options: Any) -> None:
        keeper.saver.failpoints = Failpoints(_setting(kills, rank, save=next(numbers)))
        begin(keeper, *arguments, **options)

    keepers.begin = begin_armed


def _setting(kills: Sequence[Kill], rank: int, *, save: int) -> str:
    for kill in kills:
        if kill.save != save or kill.moment == "training":
            continue
        if _dies(kill, rank):
            return f"{kill.moment}:{'kill-writer' if kill.victim == 'its writer' else 'kill'}"
        if kill.moment == "while_waiting_for_ranks":
            return "after_rank_upload:kill-writer"
    return ""


def _die_in_steps(kills: Sequence[Kill]) -> None:
    """Die once the first step after a save, or the attempt's first, has its samples."""
    ledgers: Any = Ledger
    write = ledgers.write
    steps = itertools.count()

    def write_and_die(ledger: Any, *arguments: Any) -> None:
        write(ledger, *arguments)
        made = next(steps)
        for kill in kills:
            if made == EVERY_STEPS * (kill.save - 1):
                _die(kill.victim)

    ledgers.write = write_and_die


def _die(victim: Victim) -> None:
    if victim != "its writer":
        os.kill(os.getpid(), signal.SIGKILL)
    for writer in writers_of(psutil.Process()):
        writer.kill()


def writers_of(rank: psutil.Process) -> list[psutil.Process]:
    """A rank's writer, if it has one."""
    return [child for child in rank.children() if WRITER in child.cmdline()]


def _ended_writers(home: Path, rank: int) -> Path:
    """A file with a line for each writer of a rank that was killed, not told to end."""
    return home / f"ended-writers-{rank}"


def _tell_ended_writers(path: Path) -> None:
    writers: Any = WriterProcess
    forget = writers._forget

    def tell_and_forget(writer: Any) -> None:
        if writer._running is not None and writer._running[0].poll() == -signal.SIGKILL:
            with path.open("a") as stream:
                stream.write("killed\n")
        forget(writer)

    writers._forget = tell_and_forget
