"""Carries out the kills of a soak on the bed, and waits until training has got over each."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from bed.breakage import signal_pod
from bed.cluster import Bed
from bed.profile import NODES

from pretrain_testing.bed_operator import BedOperator, let_pass
from pretrain_testing.cluster_jobs import Manifest, stage_of
from pretrain_testing.disturbed_job import DisturbedJob
from pretrain_testing.killed_job import RANK, unlimited
from pretrain_testing.soak.accounts import Done
from pretrain_testing.soak.plan import Kill, Kind


@dataclass(frozen=True)
class Disturbing:
    """A job on the bed and what can be killed about it; `begun` is a moment of `time.monotonic`."""

    bed: Bed
    job: DisturbedJob
    begun: float

    @property
    def now(self) -> float:
        """Seconds since the soak began."""
        return time.monotonic() - self.begun

    def carry_out(self, kill: Kill) -> Done:
        """Kill in time, though not before the attempt has a commit, and wait for a newer one."""
        let_pass(kill.at - self.now)
        before = self.job.wait_for_training()
        at = self.now
        self._act(kill)
        after = self._recovered(kill, before)
        return Done(
            kill,
            at=at,
            seconds=self.now - at,
            before=before.get("restarts") or {},
            after=after.get("restarts") or {},
            attempts=_attempt(after) - _attempt(before),
        )

    def _act(self, kill: Kill) -> None:
        acts: dict[Kind, Callable[[Kill], None]] = {
            "a rank": self._kill_rank,
            "a worker pod": self._delete_worker,
            "the operator's pod": self._kill_operator,
            "a kubelet": lambda kill: self._stop_kubelet(sorted(NODES)[kill.victim], kill),
            "the S3 server": lambda kill: self._away("seaweedfs", kill),
        }
        acts[kill.kind](kill)

    def _kill_rank(self, kill: Kill) -> None:
        """Its peers end without waiting for the machine."""
        victim = unlimited(self.job.workers())[kill.victim]
        signal_pod(victim["metadata"]["uid"], signal.SIGKILL, command=RANK)

    def _delete_worker(self, kill: Kill) -> None:
        self.job.jobs.delete_child("pod", unlimited(self.job.workers())[kill.victim])

    def _kill_operator(self, _kill: Kill) -> None:
        operator = BedOperator(self.bed)
        leader = operator.wait_for_leader()
        operator.kill(leader)
        operator.wait_for_leader(other_than=leader["metadata"]["name"])
        operator.wait_until_ready()

    def _stop_kubelet(self, node: str, kill: Kill) -> None:
        self._away(f"kubelet-{node}", kill)
        self.bed.kubectl("wait", f"node/{node}", "--for=condition=Ready", "--timeout=300s")

    def _away(self, part: str, kill: Kill) -> None:
        """Kill a part of the bed, and start it again after the outage."""
        self.bed.stop(part)
        try:
            let_pass(kill.outage_seconds)
        finally:
            self.bed.start(part)

    def _recovered(self, kill: Kill, before: Manifest) -> Manifest:
        """The status once there is a newer commit, by the next attempt if one was ended."""
        jobs, name = self.job.jobs, self.job.name
        if kill.cause is None:
            step = before["checkpoint"]["step"]
            return jobs.wait_for(name, "a later commit", lambda s: s["checkpoint"]["step"] > step)
        jobs.wait_for(name, "the next attempt", lambda s: _attempt(s) > _attempt(before))
        return self.job.wait_for_training()


def _attempt(status: Manifest) -> int:
    return int(stage_of(status, "train")["attempt"])
