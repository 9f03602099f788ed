"""Saving from where training stands: a snapshot now, everything else beside the next steps.

A rank's state is copied to host memory while the next step computes its gradients; its writer
makes files of it and uploads them, rank 0's commits, and all ranks settle the outcome at a later
step. A save that fails leaves older commits as they are, and training goes on. No rank's own
trouble ends a collective: each tells its outcome and all learn it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pretrain_api.reports import CheckpointStatus

from pretrain_jobs.checkpoint import snapshot
from pretrain_jobs.checkpoint.archive import Archive
from pretrain_jobs.checkpoint.cleaning import Retention
from pretrain_jobs.checkpoint.copying import lay_out
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.files import encode_json
from pretrain_jobs.checkpoint.generations import Generation
from pretrain_jobs.checkpoint.group import Group
from pretrain_jobs.checkpoint.layout import CheckpointKey
from pretrain_jobs.checkpoint.orders import (
    Commission,
    Companion,
    DiscardOrder,
    Lineage,
    Outcome,
    SaveOrder,
)
from pretrain_jobs.checkpoint.writer_process import Writer
from pretrain_jobs.errors import InfrastructureError, NonFiniteError, StageError
from pretrain_jobs.storage import ObjectStore

TRAINER_FILE = "trainer.json"
"""Rank 0's file with what all ranks have in common: step, cursor, counters, log."""

RANK_FILE = "rank.json"
"""Each rank's file with its own random generators and sums."""

PATIENCE_SECONDS = 3600.0
"""How long rank 0's writer waits for other ranks' files once its own are stored. A rank that
fails is heard of sooner, at a step."""

_STUCK = 2
"""Times the patience after which a writer that says nothing is taken for stuck."""

_POLL_SECONDS = 0.5

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SaveResult:
    """A save's outcome, the same on every rank: the commit, or why there is none.

    `size` is in bytes, of all ranks' files; `seconds` what the slowest writer took. `kept` tells of
    one without a commit that all of its files are left on the nodes for the next attempt.
    """

    step: int
    status: CheckpointStatus | None
    failure: str = ""
    size: int = 0
    seconds: float = 0.0
    kept: bool = False


def _one_thread() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="snapshot")


@dataclass
class _Pending:
    """A save whose outcome not every rank knows. `outcome` is this rank's, once it ended.

    `overdue_at` is on the monotonic clock, in seconds.
    """

    key: CheckpointKey
    overdue_at: float
    urgent: bool = False
    copying: Future[None] | None = None
    outcome: Outcome | None = None
    given_up: bool = False


@dataclass
class Saver:
    """Saves this attempt's checkpoints, one at a time.

    `retention` is None on all ranks but the first. `local` is the job's folder on a volume that
    outlives the pod, if there is one. Between `begin` and `settle` the state may
    change only after `copied`.
    """

    store: ObjectStore
    group: Group
    generation: Generation
    lineage: Lineage
    engine: Any
    scratch: Path
    failpoints: Failpoints
    writer: Writer
    retention: Retention | None = None
    latest: CheckpointStatus | None = None
    failures: int = 0
    patience_seconds: float = PATIENCE_SECONDS
    local: Path | None = None
    _pending: _Pending | None = None
    _error: StageError | None = None
    _copier: ThreadPoolExecutor = field(default_factory=_one_thread)

    @property
    def pending(self) -> bool:
        """Whether a save was begun and not settled; the same on every rank."""
        return self._pending is not None

    @property
    def copying(self) -> bool:
        """Whether the state of a save that was begun may still be read."""
        return self._pending is not None and self._pending.copying is not None

    def ended(self, seconds: float = 0.0) -> bool:
        """Whether this rank has done its part of a pending save; waits so long at most."""
        pending = self._pending
        if pending is None or pending.outcome is not None:
            return True
        if self.copying:
            return False
        pending.outcome = self.writer.outcome(seconds)
        if pending.outcome is None and time.monotonic() > pending.overdue_at:
            pending.overdue_at = math.inf
            _log.warning("the writer of step %d is stuck and is ended", pending.key.step)
            self.writer.end()
        return pending.outcome is not None

    @property
    def failed(self) -> bool:
        """Whether a pending save has failed on this rank."""
        pending = self._pending
        return pending is not None and pending.outcome is not None and _failed(pending.outcome)

    def begin(
        self,
        step: int,
        *,
        trainer: Mapping[str, Any],
        rank_state: Mapping[str, Any],
        last: bool = False,
        urgent: bool = False,
        companions: Sequence[Companion] = (),
    ) -> None:
        """Begin to save. A collective; InfrastructureError names ranks that do not come to it.

        `trainer` is rank 0's to give, `rank_state` each rank's own; both are JSON objects.
        `companions` are copied after the commit; `last` is the run's last save, and an `urgent`
        one is waited for (`finish`).
        """
        if self._pending is not None:
            raise RuntimeError("the save before was not settled")
        key = CheckpointKey(step, self.generation.number, self.generation.attempt)
        self.failpoints.reach("before_snapshot")
        self.group.meet()
        self.writer.start()
        state = snapshot.capture(self.engine)
        documents = {RANK_FILE: rank_state}
        commission = None
        if self.group.rank == 0:
            documents[TRAINER_FILE] = trainer
            superseded = self.retention.superseded_by(key, last=last) if self.retention else ()
            commission = self._commission(superseded, companions)
        overdue_at = time.monotonic() + _STUCK * self.patience_seconds
        self._pending = pending = _Pending(key, overdue_at, urgent)
        pending.copying = self._copier.submit(
            self._copy, pending, state, documents, commission=commission, urgent=urgent
        )
        self.failpoints.reach("after_snapshot")

    def copied(self) -> None:
        """Wait until the state was copied; after that it may change."""
        if self._pending is not None and self._pending.copying is not None:
            self._pending.copying.result()
            self._pending.copying = None

    def give_up(self) -> None:
        """Have rank 0 wait for no rank any more: some rank has failed."""
        pending = self._pending
        if self.group.rank or pending is None or pending.given_up or self.ended():
            return
        pending.given_up = True
        self.writer.give_up(pending.key)

    def settle(self) -> SaveResult:
        """Learn the outcome of a save that has ended on every rank. A collective.

        Raises NonFiniteError or, for an attempt that was replaced, InfrastructureError, each on
        every rank.
        """
        pending = self._pending
        if pending is None or pending.outcome is None:
            raise RuntimeError("there is no save that has ended")
        self.failpoints.reach("before_settling")
        outcomes = self.group.gather(pending.outcome)
        self._pending, self._error = None, pending.outcome.error
        result = self._conclude(pending, outcomes)
        self.failpoints.reach("after_settling")
        return result

    def finish(self, waits: Callable[[], object] | None = None) -> SaveResult:
        """Wait for the pending save's end on every rank, and settle it. A collective.

        No rank waits in a collective for another's upload for long; `waits` is called whenever
        all ranks have said that they are here.
        """
        self.copied()
        while True:
            if waits is not None:
                waits()
            own = self.ended(_POLL_SECONDS), self.failed
            told = self.group.gather(own)
            if all(ended for ended, _ in told):
                return self.settle()
            if any(failed for _, failed in told):
                self.give_up()

    def failure_of_this_rank(self) -> StageError | None:
        """The error that made the last settled save fail here, if it was here."""
        return self._error

    def close(self, *, tidily: bool) -> None:
        """End the writer: after what it was told, or at once and with it a save under way."""
        try:
            self.copied()
        finally:
            self._copier.shutdown()
            self.writer.close(tidily=tidily)

    def _commission(
        self, superseded: tuple[CheckpointKey, ...], companions: Sequence[Companion]
    ) -> Commission:
        return Commission(
            generation=self.generation,
            lineage=self.lineage,
            world_size=self.group.world_size,
            patience_seconds=self.patience_seconds,
            superseded=superseded,
            companions=tuple(companions),
        )

    def _copy(
        self,
        pending: _Pending,
        state: Mapping[str, Any],
        documents: Mapping[str, Mapping[str, Any]],
        *,
        commission: Commission | None,
        urgent: bool,
    ) -> None:
        """Copy the snapshot and hand it to the writer; in a thread of its own."""
        layout = lay_out(state)
        try:
            layout.copy(self.writer.buffer)
        except StageError as error:
            pending.outcome = Outcome(error=error)
            return
        self.failpoints.reach("after_copy")
        contents: dict[str, Archive | bytes] = dict(layout.archives)
        contents |= {name: encode_json(document) for name, document in documents.items()}
        self.writer.submit(
            SaveOrder(
                key=pending.key,
                rank=self.group.rank,
                contents=contents,
                floats=tuple(layout.floats),
                size=layout.size,
                directory=self.scratch / f"save-{self.group.rank:05d}",
                failpoint=self.failpoints.setting,
                local=self.local,
                urgent=urgent,
                commission=commission,
            )
        )

    def _conclude(self, pending: _Pending, outcomes: list[Outcome]) -> SaveResult:
        """The same on every rank, for all have the same outcomes."""
        key, first = pending.key, outcomes[0]
        if first.status is not None:
            self.latest = first.status
            if self.retention is not None:
                self.retention.committed(key, first.gone)
            size = sum(outcome.size for outcome in outcomes)
            seconds = max(outcome.seconds for outcome in outcomes)
            return SaveResult(key.step, first.status, size=size, seconds=seconds)
        self.failures += 1
        failure, kept = _first_failure(outcomes), all(outcome.kept for outcome in outcomes)
        _log.warning("the checkpoint of step %d was not saved: %s", key.step, failure)
        if kept and pending.urgent:
            _log.info("all files of step %d are left on the nodes for the next attempt", key.step)
        if first.fenced:
            raise InfrastructureError(str(first.error))
        if bad := [n for n, told in enumerate(outcomes) if isinstance(told.error, NonFiniteError)]:
            raise NonFiniteError(
                f"weights or optimizer moments of step {key.step} are not finite on rank "
                f"{bad[0]}; they were not saved, and older checkpoints stay"
            )
        if self.group.rank == 0 and not (kept and pending.urgent):
            self.writer.start()
            self.writer.submit(DiscardOrder(key, self.failpoints.setting))
        return SaveResult(key.step, None, failure, kept=kept)


def _failed(outcome: Outcome) -> bool:
    return outcome.error is not None


def _first_failure(outcomes: Sequence[Outcome]) -> str:
    failures = (
        f"rank {rank}: {told.error}" for rank, told in enumerate(outcomes) if told.error is not None
    )
    return next(failures, "rank 0 gave up")
