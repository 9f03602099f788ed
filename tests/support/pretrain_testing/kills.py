"""What is killed and when: seeded plans of kills for jobs by the command and for bare ranks.

A plan is a function of its random source alone. `killed_commands` and `killed_ranks` carry them
out, `chaos` does both many times over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Literal

from pretrain_jobs.checkpoint.failpoints import FAILPOINTS, IN_TRAINING, Failpoint

Victim = Literal[
    "one rank", "its writer", "all ranks", "the launcher", "the whole tree", "the command"
]
Moment = Literal["preprocessing", "training", "a save", "evaluation"] | Failpoint

RESTORING: tuple[Failpoint, ...] = (
    "after_claim",
    "after_completion",
    "after_listing",
    "after_verification",
)
"""Points that each start comes by."""

LOADING: tuple[Failpoint, ...] = ("during_download", "after_loading")
"""Those that need a checkpoint to resume from."""

SWEEPING: tuple[Failpoint, ...] = ("after_mark", "during_sweep")
"""Those that need files that an attempt before has left without a commit."""

ON_NODES: frozenset[Moment] = frozenset({"after_hand_over", "after_local_copy"})
"""Points of jobs that leave their saves on the node. Which of these are whole when ranks die is not
known before, so that nothing is sure to be handed over, or to be swept."""

STARTING: frozenset[Moment] = frozenset(
    (*RESTORING, *LOADING, *SWEEPING, "after_sweep", "after_hand_over")
)
COMMITTED: frozenset[Moment] = frozenset(
    {
        "after_commit",
        "after_latest",
        "during_retention",
        "after_retention",
        "before_settling",
        "after_settling",
    }
)
LEAVING_FILES: frozenset[Moment] = frozenset(
    {
        "during_rank_upload",
        "after_rank_upload",
        "while_waiting_for_ranks",
    }
)
"""Points at which some rank's manifest is never written, so that nobody can commit."""

OF_RANK_0: frozenset[Moment] = frozenset(
    {
        *SWEEPING,
        "after_completion",
        "after_sweep",
        "while_waiting_for_ranks",
        "before_commit",
        "after_commit",
        "after_latest",
        "during_retention",
        "after_retention",
        "before_model_manifest",
    }
)
"""Points that no other rank comes by."""

INSIDE: tuple[Moment, ...] = (
    "training",
    *(point for point in FAILPOINTS if point != "during_hand_over"),
)
"""Moments at which ranks die by themselves, exactly there."""

OUTSIDE: tuple[Victim, ...] = ("the whole tree", "the command")
OF_COMMANDS: tuple[Victim, ...] = (
    "one rank",
    "all ranks",
    "the whole tree",
    "the launcher",
    "the command",
)
SAVES_EACH = 2
"""By so many saves an attempt of bare ranks gets further at most, for each of its kills."""


@dataclass(frozen=True)
class Kill:
    """Send SIGKILL to `victim` at `moment`.

    From outside once `step` steps of training, or runs of fine-tuning, are done. From inside in
    save number `save` of the attempt, or in the step after the one before, on `rank`.
    """

    moment: Moment
    victim: Victim
    step: int = 0
    rank: int = 0
    save: int = 0

    @property
    def ends_the_attempt(self) -> bool:
        """Whether training must start again after it."""
        return self.victim != "its writer"

    def __str__(self) -> str:
        return f"{self.victim}, {self.moment}"


@dataclass(frozen=True)
class Done:
    """A kill that was carried out, and the step that the next attempt resumed from, if any."""

    kill: Kill
    resumed: int | None = None


Attempt = tuple[Kill, ...]
"""Kills of one attempt of bare ranks in their order; only the last may end it."""


def seeded_kills(
    source: random.Random, *, max_steps: int, before: int, in_training: int, after: int
) -> list[Kill]:
    """Kills from outside: before and after training, and in it, two of these in a save.

    The steps ascend, and lie in the first three quarters of training, so that several saves are
    left for the last.
    """
    steps = sorted(source.sample(range(2, max_steps * 3 // 4), in_training - 1))
    victims = source.sample(OF_COMMANDS, len(OF_COMMANDS))
    training = [
        Kill("training", victims[number % len(victims)], step)
        for number, step in enumerate(steps[:-1])
    ]
    training.insert(len(training) // 2, Kill("a save", source.choice(OF_COMMANDS[:3])))
    training.append(Kill("a save", "all ranks", steps[-1]))
    return [
        *(Kill("preprocessing", source.choice(OUTSIDE)) for _ in range(before)),
        *training,
        *(Kill("evaluation", source.choice(OUTSIDE), done) for done in range(after)),
    ]


def pairs() -> list[tuple[Moment, Victim]]:
    """Every moment from inside with every victim that it can have."""
    victims: tuple[Victim, ...] = ("one rank", "its writer", "all ranks")
    return [
        (moment, victim)
        for moment, victim in product(INSIDE, victims)
        if victim != "its writer" or moment not in IN_TRAINING
    ]


@dataclass
class Deck:
    """Deals out pairs of moment and victim at random, all of them before any comes again."""

    source: random.Random
    _cards: list[tuple[Moment, Victim]] = field(default_factory=list)

    def deal(self, fits: Callable[[Moment, Victim], bool]) -> tuple[Moment, Victim]:
        """The next pair that fits; those that do not are kept for later."""
        while True:
            for number, card in enumerate(self._cards):
                if fits(*card):
                    return self._cards.pop(number)
            cards = pairs()
            self._cards += self.source.sample(cards, len(cards))


def seeded_attempts(
    source: random.Random, deck: Deck, *, kills: int, on_node: bool = False
) -> list[Attempt]:
    """Kills from inside for one job of two ranks, each at a moment that its attempt will reach.

    `on_node` tells of a job that leaves its saves on the node.
    """
    return list(_attempts(_dealt(source, deck, kills, _Story(on_node))))


def _dealt(source: random.Random, deck: Deck, kills: int, story: _Story) -> Iterator[Kill]:
    """Kills in their order, as what lies in the store after those before allows.

    A writer's death is known once the next save has begun; only then may its rank die in a step.
    """
    for left in range(kills, 0, -1):
        moment, victim = deck.deal(partial(story.allows, last=left == 1))
        rank = 0 if moment in OF_RANK_0 else source.randrange(2)
        more = source.randint(1, SAVES_EACH) if story.save == 0 else 1
        if moment == "during_retention" or (moment == "training" and story.save):
            more = 2
        save = 0 if moment in STARTING or moment == "before_model_manifest" else story.save + more
        kill = Kill(moment, victim, rank=rank, save=save)
        story.tell(kill)
        yield kill


@dataclass
class _Story:
    """What is certain of a job after some kills; `save` is the attempt's last one with a kill."""

    on_node: bool = False
    committed: bool = False
    leftovers: bool = False
    save: int = 0

    def allows(self, moment: Moment, _victim: Victim, *, last: bool) -> bool:
        """Whether the moment is sure to come."""
        if moment == "before_model_manifest":
            return last
        if moment in STARTING and self.save:
            return False
        if moment in LOADING:
            return self.committed
        if moment in ON_NODES:
            return self.on_node
        return moment not in SWEEPING or (self.leftovers and not self.on_node)

    def tell(self, kill: Kill) -> None:
        """Go on after a kill."""
        writers_died = self.save > 0
        self.committed |= kill.moment in COMMITTED
        self.committed |= kill.save > 1 and kill.moment != "training" and not writers_died
        if not kill.ends_the_attempt:
            self.save = kill.save
            return
        self.save = 0
        if kill.moment not in STARTING:
            self.leftovers = kill.moment in LEAVING_FILES
        elif kill.moment in ("during_sweep", "after_sweep"):
            self.leftovers = False


def _attempts(kills: Iterator[Kill]) -> Iterator[Attempt]:
    """Kills parted after each that ends its attempt."""
    attempt: list[Kill] = []
    for kill in kills:
        attempt.append(kill)
        if kill.ends_the_attempt:
            yield tuple(attempt)
            attempt = []
    if attempt:
        yield tuple(attempt)


def table(done: Sequence[Done], failed: Sequence[Done]) -> str:
    """Moment, victim, count, steps that training resumed from, and result, a line each."""
    lines = [("moment", "victim", "count", "resumed from step", "result")]
    for moment, victim in sorted({(one.kill.moment, one.kill.victim) for one in (*done, *failed)}):
        good, bad = (
            [one for one in some if (one.kill.moment, one.kill.victim) == (moment, victim)]
            for some in (done, failed)
        )
        steps = sorted({one.resumed for one in (*good, *bad) if one.resumed is not None})
        resumed = " ".join(map(str, steps)) or "went on"
        result = f"{len(bad)} in runs that failed" if bad else "as if left alone"
        lines.append((moment, victim, str(len(good) + len(bad)), resumed, result))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
