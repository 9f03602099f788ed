"""Many random kills over many short jobs, each job compared with one left alone: `make chaos`.

Most jobs are bare ranks, which start in a moment and die from inside, at every point of restoring,
saving and committing. Some are run by the command and killed from outside, launcher and command
included, or run on the bed. The same seed and number of kills give the same plan. A run that fails
is told, with how to repeat it alone, and the others go on.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pretrain_testing import killed_clusters as clusters
from pretrain_testing import killed_commands as commands
from pretrain_testing import killed_ranks as ranks
from pretrain_testing.kills import Attempt, Deck, Done, Kill, seeded_attempts, seeded_kills, table
from pretrain_testing.small_jobs import STEPS as LONG_STEPS
from pretrain_testing.training import assert_same_training

Ground = Literal["ranks", "command", "cluster"]
KILLS = 200
KILLS_EACH = ranks.KILLS_EACH
STAGES = (1, 2, 3, 0)
"""ZeRO stages of bare ranks, by turns."""

BY_COMMAND, BY_CLUSTER = 10, 5
"""One run in so many."""


@dataclass(frozen=True)
class Run:
    """One job and its kills; `stage` is the ZeRO stage of bare ranks."""

    number: int
    ground: Ground
    stage: int
    attempts: tuple[Attempt, ...]

    @property
    def kills(self) -> list[Kill]:
        """All of them, in order."""
        return [kill for attempt in self.attempts for kill in attempt]

    def __str__(self) -> str:
        where = f"ranks at ZeRO {self.stage}" if self.ground == "ranks" else self.ground
        return f"run {self.number} ({where}): {'; '.join(map(str, self.kills))}"


@dataclass(frozen=True)
class Ending:
    """What became of a run: its kills as far as they were carried out, and what went wrong."""

    run: Run
    done: list[Done]
    failure: str = ""


def planned(*, seed: int, kills: int, cluster: bool = False) -> list[Run]:
    """The runs of a seed, the last with the kills that are left over."""
    deck = Deck(random.Random(seed))
    runs = []
    for number in range(-(-kills // KILLS_EACH)):
        source = random.Random(f"{seed}/{number}")
        size = min(KILLS_EACH, kills - number * KILLS_EACH)
        ground = _ground(number, size, cluster=cluster)
        stage = STAGES[number % len(STAGES)]
        on_node = ranks.leaves_on_node(number)
        attempts = _attempts(ground, source, deck, size, on_node=on_node)
        runs.append(Run(number, ground, stage, tuple(attempts)))
    return runs


def _attempts(
    ground: Ground, source: random.Random, deck: Deck, kills: int, *, on_node: bool
) -> list[Attempt]:
    if ground == "ranks":
        return seeded_attempts(source, deck, kills=kills, on_node=on_node)
    if ground == "cluster":
        return [(kill,) for kill in clusters.seeded_cluster_kills(source, kills=kills)]
    steps = commands.STEPS
    outside = seeded_kills(source, max_steps=steps, before=0, in_training=kills, after=0)
    return [(kill,) for kill in outside]


def _ground(number: int, size: int, *, cluster: bool) -> Ground:
    """The last runs of each ten, or five, are not of bare ranks."""
    if size < KILLS_EACH:
        return "ranks"
    if cluster and number % BY_CLUSTER == BY_CLUSTER - 2:
        return "cluster"
    return "command" if number % BY_COMMAND == BY_COMMAND - 1 else "ranks"


@dataclass
class Grounds:
    """Where runs take place, and the runs left alone, each made once."""

    directory: Path

    def carry_out(self, run: Run) -> Ending:
        """Run a job through its kills and compare it; never raises for what that finds."""
        done: list[Done] = []
        try:
            for some in self._killed(run):
                done += some
        except Exception as error:  # noqa: BLE001 - the other runs go on whatever it is
            return Ending(run, done, _told(error))
        return Ending(run, done)

    def _killed(self, run: Run) -> Iterator[list[Done]]:
        if run.ground == "ranks":
            return self._killed_ranks(run)
        return self._killed_command(run) if run.ground == "command" else self._killed_cluster(run)

    def _killed_ranks(self, run: Run) -> Iterator[list[Done]]:
        undisturbed = ranks.job(self.directory, f"undisturbed-{run.stage}", stage=run.stage)
        ranks.run_undisturbed(undisturbed)
        killed = undisturbed.variant(f"run-{run.number}")
        main = ranks.die_beside_a_volume if ranks.leaves_on_node(run.number) else None
        yield from ranks.run_killed(killed, run.attempts, main)
        assert_same_training(killed, undisturbed)
        shutil.rmtree(killed.directory)

    def _killed_command(self, run: Run) -> Iterator[list[Done]]:
        manifest, undisturbed = self._by_command("small", steps=commands.STEPS)
        killed = commands.with_prepared_text(
            commands.Workdir(self.directory / f"run-{run.number}"), undisturbed
        )
        yield commands.run_killed(manifest, killed, run.kills)
        commands.compare(killed, undisturbed)
        shutil.rmtree(killed.path)

    def _killed_cluster(self, run: Run) -> Iterator[list[Done]]:
        _, undisturbed = self._by_command("long", steps=LONG_STEPS)
        with clusters.job_on_the_bed(f"chaos-{run.number}") as job:
            yield from clusters.run_killed(job, run.kills)
            clusters.compare(job, undisturbed)

    def _by_command(self, name: str, *, steps: int) -> tuple[Path, commands.Workdir]:
        """A job of so many steps and its run left alone, made when it is asked for first."""
        manifest = self.directory / f"{name}.yaml"
        undisturbed = commands.Workdir(self.directory / f"undisturbed-{name}")
        if not undisturbed.weights.exists():
            commands.write_training_job(manifest, steps=steps)
            commands.run_undisturbed(manifest, commands.with_small_data(undisturbed))
        return manifest, undisturbed


def _told(error: Exception) -> str:
    """An error in one line; of an assertion without words, the line that made it."""
    text = " ".join(str(error).split()) or traceback.extract_tb(error.__traceback__)[-1].line
    return f"{type(error).__name__}: {text}"


def main() -> int:
    """Carry out a plan, or one run of it; 1 if any run failed."""
    options = _parse()
    seed = random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    shutil.rmtree(options.workdir, ignore_errors=True)
    options.workdir.mkdir(parents=True)
    runs = planned(seed=seed, kills=options.kills, cluster=options.cluster)
    chosen = [run for run in runs if options.run in (None, run.number)]
    _say(f"{sum(len(run.kills) for run in chosen)} kills in {len(chosen)} runs, seed {seed}")
    grounds = Grounds(options.workdir.resolve())
    endings = list(_carried_out(grounds.carry_out, chosen))
    again = f"make chaos SEED={seed} KILLS={options.kills}{' CLUSTER=1' * options.cluster}"
    return _judge(endings, again=again)


def _carried_out(carry_out: Callable[[Run], Ending], runs: list[Run]) -> Iterator[Ending]:
    """The endings as they come, a line printed for each."""
    total, killed = sum(len(run.kills) for run in runs), 0
    for run in runs:
        begun = time.monotonic()
        ending = carry_out(run)
        killed += len(run.kills)
        seconds = time.monotonic() - begun
        _say(f"{killed:4d}/{total} {run}: {ending.failure or 'as if left alone'}, {seconds:.0f} s")
        yield ending


def _judge(endings: list[Ending], *, again: str) -> int:
    """Print what was found, the verdict last."""
    failed = [ending for ending in endings if ending.failure]
    good = itertools.chain.from_iterable(one.done for one in endings if not one.failure)
    bad = itertools.chain.from_iterable(one.done for one in failed)
    done, lost = list(good), list(bad)
    _say(f"\n{table(done, lost)}\n")
    for ending in failed:
        _say(f"{ending.run}\n  failed: {ending.failure}\n  alone: {again} RUN={ending.run.number}")
    if failed:
        _say(f"{len(failed)} of {len(endings)} runs failed; all again: {again}")
        return 1
    alone = f" RUN={endings[0].run.number}" if len(endings) == 1 else ""
    _say(f"{len(done)} kills: weights byte-identical, ledger identical; again: {again}{alone}")
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--run", type=int, help="of the plan's runs this one alone")
    parser.add_argument("--cluster", action="store_true", help="some runs on the bed that is up")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
