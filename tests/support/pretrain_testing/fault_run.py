"""Runs all faulty jobs side by side, mends what can be mended, and keeps what was seen of each."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pretrain_testing.cluster_jobs import stage_of, trains_with_a_checkpoint
from pretrain_testing.cluster_watch import Version, Watched
from pretrain_testing.fault import Fault
from pretrain_testing.fault_ends import FAILS, HANG, HANG_SECONDS
from pretrain_testing.fault_waits import WAITS
from pretrain_testing.fault_world import World

PATIENCE_SECONDS = 480.0
LOOK_SECONDS = 0.2

Manifest = dict[str, Any]


@dataclass
class Seen:
    """What was seen of a faulty job; times are seconds of one clock, None while it is not so."""

    fault: Fault
    began_at: float
    known_at: float | None = None
    told_at: float | None = None
    mended_at: float | None = None
    ended_at: float | None = None
    told: Manifest = field(default_factory=dict)
    """The job when its fault was told first."""

    last: Manifest = field(default_factory=dict)
    """The job as it was seen last."""

    stopped_step: int | None = None

    @property
    def name(self) -> str:
        return self.fault.name

    @property
    def status(self) -> Manifest:
        status: Manifest = self.last.get("status") or {}
        return status

    @property
    def sentence(self) -> str:
        return str((self.told.get("status") or {}).get("blockedBy", ""))

    @property
    def delay(self) -> float:
        """Seconds from the cluster's sign to the job's sentence."""
        assert self.known_at is not None, f"the cluster never showed {self.name}: {self.status}"
        assert self.told_at is not None, f"{self.name} was never told: {self.status}"
        return max(0.0, self.told_at - self.known_at)


def run_faults(world: World, watched: Watched) -> dict[str, Seen]:
    """Run every fault to its end, or until patience is over."""
    run = _Run(world, watched)
    run.begin(HANG, *WAITS, *(fault for fault in FAILS if not fault.trains))
    end = time.monotonic() + PATIENCE_SECONDS
    while run.unfinished() and time.monotonic() < end:
        run.look()
        time.sleep(LOOK_SECONDS)
    return run.seen


@dataclass
class _Run:
    world: World
    watched: Watched
    seen: dict[str, Seen] = field(default_factory=dict)

    def begin(self, *faults: Fault) -> None:
        self.seen |= {fault.name: Seen(fault, time.monotonic()) for fault in faults}
        jobs = [self.world.job(f.name, f.spec, limited=f.limited) for f in faults]
        self.world.apply(*jobs)

    def unfinished(self) -> list[Seen]:
        everything = len(self.seen) == 1 + len(WAITS) + len(FAILS)
        open_ones = [seen for seen in self.seen.values() if seen.ended_at is None]
        return open_ones if everything else [*open_ones, self.seen[HANG.name]]

    def look(self) -> None:
        """One look at everything that is not over."""
        for seen in self.unfinished():
            if seen.ended_at is None:
                seen.last = self._last(seen)
                self._follow(seen)
        trains = [fault for fault in FAILS if fault.trains and fault.name not in self.seen]
        if trains and _stage_is_complete(self.seen[HANG.name], "preprocess"):
            self.begin(*trains)

    def _follow(self, seen: Seen) -> None:
        """Take over what is new of one job, and do what it waits for."""
        if seen.fault is HANG:
            self._provoke(seen)
        elif seen.known_at is None:
            seen.known_at = _at(seen.fault.sign.of(self.watched, seen.name))
        if seen.told_at is None and (version := self._telling(seen)):
            seen.told_at, seen.told = version.seen_at, version.object
        if seen.told_at is not None and seen.known_at is not None:
            self._conclude(seen)

    def _provoke(self, seen: Seen) -> None:
        """Stop a rank of the gang once it trains, and can go on from a checkpoint."""
        if seen.known_at is None and trains_with_a_checkpoint(seen.status):
            jobs = self.world.jobs(limited=False)
            pods = jobs.children("pods", seen.name, "train")
            self.world.stop_rank(next(p["metadata"]["name"] for p in pods if _index(p) == 1))
            seen.known_at = time.monotonic() + HANG_SECONDS
            seen.stopped_step = seen.status["training"]["step"]

    def _conclude(self, seen: Seen) -> None:
        jobs = self.world.jobs(limited=seen.fault.limited)
        if seen.fault.reason:
            over = seen.status.get("phase") == "Failed"
        elif seen.fault is HANG:
            step = (seen.status.get("training") or {}).get("step", 0)
            over = seen.status.get("phase") == "Training" and step > (seen.stopped_step or 0)
        elif seen.mended_at is None:
            self._mend(seen)
            return
        else:
            over = _stage_is_complete(seen, "tokenizer")
        if over:
            seen.ended_at = time.monotonic()
            if not seen.fault.reason:
                jobs.patch_spec(seen.name, suspend=True)

    def _mend(self, seen: Seen) -> None:
        """Mend a fault once there is a tokenizer, which not every job shall train anew."""
        if not _stage_is_complete(self.seen[HANG.name], "tokenizer"):
            return
        seen.mended_at = time.monotonic()
        if seen.fault.mend is not None:
            seen.fault.mend(self.world)
        else:
            jobs = self.world.jobs(limited=seen.fault.limited)
            jobs.patch_spec(seen.name, **seen.fault.edit)

    def _telling(self, seen: Seen) -> Version | None:
        def tells(job: Manifest) -> bool:
            text = (job.get("status") or {}).get("blockedBy", "")
            return job["metadata"]["name"] == seen.name and bool(
                re.search(seen.fault.told, text, re.DOTALL)
            )

        return self.watched.first("PretrainJob", tells)

    def _last(self, seen: Seen) -> Manifest:
        return next(self._versions(seen.name), {})

    def _versions(self, name: str) -> Iterator[Manifest]:
        """From the newest to the oldest."""
        for version in reversed(list(self.watched.versions)):
            if version.kind == "PretrainJob" and version.object["metadata"]["name"] == name:
                yield version.object


def _at(version: Version | None) -> float | None:
    return version.seen_at if version else None


def _index(pod: Manifest) -> int:
    return int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


def _stage_is_complete(seen: Seen, stage: str) -> bool:
    stages = seen.status.get("stages")
    return bool(stages) and stage_of(seen.status, stage)["state"] == "Complete"
