"""All that a soak has found, judged subject by subject."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from pretrain_testing.cluster_jobs import stage_of
from pretrain_testing.soak.accounts import Done, judge_goodput, judge_kills
from pretrain_testing.soak.bounds import Bounds
from pretrain_testing.soak.children import Child, judge_children, judge_events
from pretrain_testing.soak.growth import Growth, growths, judge_operator, judge_rank_0
from pretrain_testing.soak.history import History, judge_history
from pretrain_testing.soak.plan import STORAGE
from pretrain_testing.soak.readings import Seen
from pretrain_testing.soak.stored import Stored, judge_stored


@dataclass(frozen=True)
class Objects:
    """Those of the namespace: before the job, when it trained first, at its end, after it."""

    before: Sequence[Child]
    first: Sequence[Child]
    last: Sequence[Child]
    after: Sequence[Child]


@dataclass(frozen=True)
class Findings:
    """What was found; `status` was read at `read_at`, while the job trained for the last time.

    `seconds` is how long it was watched, `looks` how often there was time to look.
    """

    done: Sequence[Done]
    status: dict[str, Any]
    read_at: datetime
    seconds: float
    looks: int
    seen: Seen
    objects: Objects
    stored: Stored
    history: History
    workers: int
    keep_last: int
    bounds: Bounds

    @property
    def restarts(self) -> dict[str, int]:
        """By cause, as status counts them."""
        return self.status.get("restarts") or {}

    @property
    def attempts(self) -> int:
        """Attempts of training."""
        return int(stage_of(self.status, "train")["attempt"]) + 1

    @cached_property
    def growths(self) -> list[Growth]:
        """Of each operator that led."""
        return growths(self.seen.operators, self.bounds)

    def judged(self) -> dict[str, list[str]]:
        """By subject, what is wrong; an empty list where nothing is."""
        return {
            "kills": judge_kills(self.done, self.restarts),
            "goodput": judge_goodput(
                self.status["goodput"], read_at=self.read_at, bounds=self.bounds
            ),
            "samples": judge_history(self.history, through=self.stored.newest, ranks=self.workers),
            "checkpoints": self._judge_stored(),
            "objects": self._judge_objects(),
            "events": self._judge_events(),
            "operator": judge_operator(self.growths, seconds=self.seconds, bounds=self.bounds),
            "rank 0": judge_rank_0(self.seen.ranks, self.bounds),
            "readings": self._judge_looks(),
        }

    def _judge_stored(self) -> list[str]:
        return judge_stored(
            self.stored,
            attempts=self.attempts,
            keep_last=self.keep_last,
            storage_outages=sum(one.kill.kind == STORAGE for one in self.done),
            bounds=self.bounds,
        )

    def _judge_objects(self) -> list[str]:
        objects = self.objects
        return [
            *judge_children(objects.first, objects.last, when="at the end of training"),
            *judge_children(objects.before, objects.after, when="once the job is suspended"),
        ]

    def _judge_events(self) -> list[str]:
        told, restarts = self.seen.events.values(), sum(self.restarts.values())
        return judge_events(told, attempts=self.attempts, restarts=restarts)

    def _judge_looks(self) -> list[str]:
        wanted = self.bounds.readings_share * self.looks
        leading = sum(reading.leads for reading in self.seen.operators)
        counts = {"an operator that leads": leading, "rank 0": len(self.seen.ranks)}
        return [
            f"{count} readings of {whom} were taken where there was time for {self.looks}."
            for whom, count in counts.items()
            if count < wanted
        ]
