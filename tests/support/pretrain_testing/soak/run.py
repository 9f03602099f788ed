"""A soak from its job's first commit to what is left after its end, on a bed that is up."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bed.cluster import Bed
from bed.failures import dump_failure
from bed.namespaces import passing_namespace

from pretrain_testing.bed_operator import BedOperator, let_pass
from pretrain_testing.disturbed_job import DisturbedJob
from pretrain_testing.killed_job import unlimited
from pretrain_testing.soak.accounts import Done
from pretrain_testing.soak.bounds import BOUNDS
from pretrain_testing.soak.children import KINDS, Child, child_of, judge_children
from pretrain_testing.soak.disturbing import Disturbing
from pretrain_testing.soak.findings import Findings, Objects
from pretrain_testing.soak.history import read_history
from pretrain_testing.soak.job import KEEP_LAST, NAME, WORKERS, prepared_job, soak_changes
from pretrain_testing.soak.plan import Kill
from pretrain_testing.soak.stored_by import stored_by
from pretrain_testing.soak.watching import LOOK_SECONDS, Watch

SETTLING_SECONDS = 120.0
"""Pods of the last attempt that was ended are gone by then: their grace period is 30 s."""

_POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Soak:
    """A plan on a bed, how long to watch, and a folder for the ranks' ledgers."""

    bed: Bed
    plan: Sequence[Kill]
    seconds: float
    ledgers: Path

    def carry_out(self) -> Findings:
        """Run it; if that fails, or finds anything wrong, what the cluster has is written down."""
        BedOperator(self.bed).wait_until_ready()
        with passing_namespace(self.bed.api, NAME) as namespace:
            job = prepared_job(self.bed, namespace)
            try:
                findings = self._disturbed(job, namespace)
                if any(findings.judged().values()):
                    self._write_down(namespace)
            except BaseException as error:
                error.add_note(f"what is left in the cluster: {self._write_down(namespace)}")
                raise
            finally:
                job.jobs.delete(NAME)
        return findings

    def _disturbed(self, job: DisturbedJob, namespace: str) -> Findings:
        place = Place(self.bed, namespace)
        before = place.objects()
        job.start(**soak_changes(job.prefix, seconds=self.seconds))
        job.wait_for_training()
        first, begun = place.objects(), time.monotonic()
        with Watch(self.bed, namespace, begun, self.ledgers).running() as seen:
            done = list(self._kill_all(Disturbing(self.bed, job, begun)))
            let_pass(begun + self.seconds - time.monotonic())
            job.wait_for_training()
            last = place.settled(first)
            status, read_at = job.status, datetime.now(UTC)
            seconds = time.monotonic() - begun
            _suspend(job)
        return Findings(
            done=done,
            status=status,
            read_at=read_at,
            seconds=seconds,
            looks=int(seconds / LOOK_SECONDS),
            seen=seen,
            objects=Objects(before, first, last, after=place.settled(before)),
            stored=stored_by(job),
            history=read_history(self.ledgers),
            workers=WORKERS,
            keep_last=KEEP_LAST,
            bounds=BOUNDS,
        )

    def _kill_all(self, disturbing: Disturbing) -> Iterator[Done]:
        for kill in self.plan:
            done = disturbing.carry_out(kill)
            counted = ", ".join(f"{count} {cause}" for cause, count in done.restarts.items())
            print(
                f"{done.at:5.0f} s: {kill.kind} killed; restarts: {counted or 'none'}; "
                f"a newer commit after {done.seconds:.0f} s",
                flush=True,
            )
            yield done

    def _write_down(self, namespace: str) -> Path:
        return dump_failure(self.bed, test=NAME, namespace=namespace)


@dataclass(frozen=True)
class Place:
    """The namespace of the job, and what is in it."""

    bed: Bed
    namespace: str

    def objects(self) -> list[Child]:
        """All objects of the kinds that a job has, whoever made them."""
        found = self.bed.kubectl_json("get", ",".join(KINDS), f"--namespace={self.namespace}")
        return [child_of(manifest) for manifest in found["items"]]

    def settled(self, expected: Sequence[Child]) -> list[Child]:
        """The objects once they are as expected, or after the time that this may take."""
        end = time.monotonic() + SETTLING_SECONDS
        while True:
            found = self.objects()
            if not judge_children(expected, found, when="now") or time.monotonic() > end:
                return found
            time.sleep(_POLL_SECONDS)


def _suspend(job: DisturbedJob) -> None:
    """Have its workers save a last time and end."""
    unlimited(job.workers())
    job.jobs.patch_spec(NAME, suspend=True)
    job.jobs.wait_for(NAME, "suspension", lambda status: status.get("phase") == "Suspended")
    job.jobs.wait_until_gone("jobs,pods", NAME, "train")
