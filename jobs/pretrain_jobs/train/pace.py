"""How fast each rank is by itself: ranks that are slow hold up all others, who only wait.

Measured is what a rank does without the others: its wait for samples, and the forward pass of a
step's last micro-batch. Backward passes and updates contain the ranks' exchange of gradients, in
which the fast ones wait for the slow. At ZeRO stage 3 the forward pass contains an exchange, too
(it gathers parameters); then only the wait for samples tells ranks apart.
"""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pretrain_api.reports import LATE_RATIO, NODE_ENV

LATE_INTERVALS = 3
"""Intervals on end after which a late rank is told of."""

_log = logging.getLogger(__name__)


@dataclass
class Pace:
    """One rank's own seconds since it last told them; `clock` gives seconds.

    It tells them in a step that is `due`, as its place in a sum over the ranks that is made anyway.
    """

    rank: int
    world_size: int
    clock: Callable[[], float]
    due: bool = False
    _waited: float = 0.0
    _computed: float = 0.0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Measure a wait for samples."""
        before = self.clock()
        yield
        self._waited += self.clock() - before

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Measure a forward pass; the block ends only once its result is there."""
        before = self.clock()
        yield
        self._computed += self.clock() - before

    def share(self) -> list[float]:
        """Its part of [waited, computed] of every rank; nothing if that is not due."""
        if not self.due or self.world_size == 1:
            return []
        shares = [0.0] * (2 * self.world_size)
        shares[2 * self.rank : 2 * self.rank + 2] = self._waited, self._computed
        self._waited = self._computed = 0.0
        return shares


def ratios(shares: Sequence[float], *, gathers: bool) -> list[float]:
    """Each rank's own time over the median's; `shares` are the sums that all ranks have told.

    The lower median, so that of two ranks the slower one stands out. `gathers` tells that ranks
    wait for each other in the forward pass: then the shortest one counts for all of them.
    """
    waited, computed = shares[::2], shares[1::2]
    if gathers:
        computed = [min(computed)] * len(computed)
    own = [sum(parts) for parts in zip(waited, computed, strict=True)]
    median = statistics.median_low(own)
    return [seconds / median if median else 1.0 for seconds in own]


@dataclass
class Stragglers:
    """Who is late for how many intervals on end; kept by rank 0, which tells of it.

    `nodes` has the name of each rank's node.
    """

    nodes: Sequence[str]
    newest: Sequence[float] = ()
    """The ratios of the last interval, by rank."""

    _late: dict[int, int] = field(default_factory=dict)

    def judge(self, found: Sequence[float]) -> list[int]:
        """Take note of an interval; the ranks that have just been late for long enough."""
        self.newest = found
        late = [rank for rank, ratio in enumerate(found) if ratio > LATE_RATIO]
        self._late = {rank: self._late.get(rank, 0) + 1 for rank in late}
        told = [rank for rank, times in self._late.items() if times == LATE_INTERVALS]
        for rank in told:
            _log.warning(
                "rank %d on %s is slow: for %d intervals its own part of a step took over %g "
                "times the median of all ranks, at last %.1f times",
                rank,
                self.nodes[rank],
                LATE_INTERVALS,
                LATE_RATIO,
                found[rank],
            )
        return told

    @property
    def slowest(self) -> tuple[int, float] | None:
        """The rank with the largest ratio, and that; None before the first interval."""
        return max(enumerate(self.newest), key=lambda item: item[1], default=None)


def node_name(environment: Mapping[str, str], host: str) -> str:
    """The name of this rank's node, or of its pod where nobody tells the node's."""
    return environment.get(NODE_ENV) or host
