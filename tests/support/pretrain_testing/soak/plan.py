"""What a soak kills and when: a function of its seed, its length and the pause between kills."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pretrain_api.reports import Cause

Kind = Literal["a rank", "a worker pod", "the operator's pod", "a kubelet", "the S3 server"]

CAUSES: dict[Kind, Cause | None] = {
    "a rank": Cause.INFRASTRUCTURE,
    "a worker pod": Cause.PREEMPTED,
    "the operator's pod": None,
    "a kubelet": None,
    "the S3 server": None,
}
"""The cause of the one restart that each is; None where training goes on as if nothing had been."""

STORAGE: Kind = "the S3 server"
OPERATOR: Kind = "the operator's pod"
OPERATOR_DIES_BEFORE = 0.5
"""Share of the soak in which the operator's pod may die: one process is watched from then on."""

OUTAGE_SECONDS = (5, 20)
"""How long a kubelet or the S3 server is away at least: a node is unreachable after 10 s here."""

VICTIMS = 2
"""Ranks, worker pods and nodes."""


@dataclass(frozen=True)
class Kill:
    """Kill this so many seconds after the soak began; `victim` counts ranks, pods or nodes."""

    at: float
    kind: Kind
    victim: int
    outage_seconds: int

    @property
    def cause(self) -> Cause | None:
        """The cause of the restart that it is, if any."""
        return CAUSES[self.kind]


def planned(*, seed: int, seconds: float, every: float) -> list[Kill]:
    """A kill after each pause, but for the end of the last, so that its way back is seen."""
    source = random.Random(seed)
    moments = [number * every for number in range(1, math.ceil(seconds / every))]
    kinds = _dealt(source, [moment < OPERATOR_DIES_BEFORE * seconds for moment in moments])
    return [
        Kill(moment, kind, source.randrange(VICTIMS), source.randint(*OUTAGE_SECONDS))
        for moment, kind in zip(moments, kinds, strict=True)
    ]


def _dealt(source: random.Random, operator_may_die: list[bool]) -> Iterator[Kind]:
    """Kinds at random, all of them before any comes again as far as each may come."""
    kinds = list(CAUSES)
    cards: list[Kind] = []
    for may_die in operator_may_die:
        if not any(may_die or card != OPERATOR for card in cards):
            cards += source.sample(kinds, len(kinds))
        card = next(card for card in cards if may_die or card != OPERATOR)
        cards.remove(card)
        yield card
