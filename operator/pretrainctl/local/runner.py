"""The loop of a local run: observe, plan, apply, store the status, wait for the next change.

The same pure plan as on a cluster decides everything; this only carries out and waits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from pretrain_api.job import PretrainJob
from pretrain_api.reports import StageName, StageProgress
from pretrain_api.status import TERMINAL_PHASES, Phase, PretrainJobStatus
from pretrain_operator.observed import Event, Observed, Settings
from pretrain_operator.plan import Plan, plan

from pretrainctl.errors import InterruptedRunError
from pretrainctl.local.controller import Controller
from pretrainctl.local.job_file import JobFile
from pretrainctl.local.observe import Observer
from pretrainctl.local.wakeups import Wakeups
from pretrainctl.local.warden import Warden

PROGRESS_SECONDS = 0.5
"""How often progress files are read while pods run."""

STORE_SECONDS = 1.0
"""How often the job's file is written when only figures change."""

STOP_GRACE_SECONDS = 3.5
"""From SIGTERM to SIGKILL when the command is stopped: it promises to be gone after 5 s."""

_KILL_SECONDS = 10.0

Clock = Callable[[], datetime]
"""The time, in UTC."""


class View(Protocol):
    """Shows a run to somebody."""

    def update(self, status: PretrainJobStatus, progress: tuple[StageProgress, ...]) -> None:
        """Show where the job stands."""

    def event(self, event: Event) -> None:
        """Show an event of the plan."""

    def note(self, text: str) -> None:
        """Say something about the run itself."""


@dataclass
class Runner:
    """Runs one job until it ends, reaches a stage, or is stopped."""

    job: PretrainJob
    file: JobFile
    controller: Controller
    wakeups: Wakeups
    warden: Warden
    settings: Settings
    clock: Clock
    until: StageName | None = None
    view: View = field(init=False)
    observer: Observer = field(init=False)
    wake_at: datetime | None = field(default=None, init=False)
    stored_at: datetime | None = field(default=None, init=False)
    unstored: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.observer = Observer(self.controller)

    def run(self, view: View) -> PretrainJob:
        """The job as it is at the end; InterruptedRunError after a signal."""
        self.view = view
        self._forget_lost_pods()
        try:
            while not self._settle():
                self._wait()
                if self.wakeups.stops:
                    self._stop()
                    raise InterruptedRunError("stopped; the same command goes on from here")
        finally:
            self._end_all_pods()
        return self.job

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.job.status.phase in TERMINAL_PHASES or self._reached(self.job.status)

    def _forget_lost_pods(self) -> None:
        """Pods of an earlier run are gone: their attempts end as if suspended, at no cost."""
        if any(stage.state == "Running" for stage in self.job.status.stages):
            self._pause(Observed(), "An earlier run was killed.")

    def _settle(self) -> bool:
        """Plan and carry out until nothing changes; whether the run is over.

        Pods start only once the plan has seen their Job and its status is stored: a run that is
        killed at any moment knows of every attempt that ever ran.
        """
        while True:
            changes = self.controller.changes
            self.warden.ensure()
            self._plan_and_carry_out()
            if self.finished:
                return True
            if self.controller.changes == changes:
                self.wake_at = _earliest(self.wake_at, self.controller.sync())
            if self.controller.changes == changes:
                return False

    def _plan_and_carry_out(self) -> None:
        observed = self.observer.observe(self.clock())
        result = plan(self.job, observed, self.clock(), self.settings)
        if self._reached(result.status) and result.status.phase not in TERMINAL_PHASES:
            self._pause(observed, f"Stopped after {self.until}; without --until it goes on.")
            self.view.note(f"stopped after {self.until}; without --until it goes on")
            return
        for manifest in result.apply:
            self.controller.apply(manifest)
        self._store(result, observed)
        for child in result.delete:
            self.controller.delete(child)
        self.wake_at = None
        if result.requeue_after is not None:
            self.wake_at = self.clock() + timedelta(seconds=result.requeue_after)

    def _store(self, result: Plan, observed: Observed) -> None:
        """Keep the new status and show it; why a job failed is told once, by its caller."""
        before = self.job.status
        self.job = self.job.model_copy(update={"status": result.status})
        self.unstored = self.unstored or result.status != before
        now = self.clock()
        due = self.stored_at is None or now - self.stored_at >= timedelta(seconds=STORE_SECONDS)
        if self.unstored and (due or _without_figures(before) != _without_figures(result.status)):
            self._save()
        if result.status.phase != Phase.FAILED:
            for event in result.events:
                self.view.event(event)
        self.view.update(result.status, observed.progress)

    def _save(self) -> None:
        self.file.save(self.job)
        self.stored_at = self.clock()
        self.unstored = False

    def _wait(self) -> None:
        seconds = PROGRESS_SECONDS if self.controller.active_pods else None
        if self.wake_at is not None:
            left = max(0.0, (self.wake_at - self.clock()).total_seconds())
            seconds = left if seconds is None else min(left, seconds)
        for ended in self.wakeups.wait(seconds):
            self.controller.finish(ended)

    def _stop(self) -> None:
        self.view.note("stopping; once more to stop at once")
        self.controller.disrupt()
        self._wait_for_pods(STOP_GRACE_SECONDS, or_stops=2)
        self.controller.kill()
        self._wait_for_pods(_KILL_SECONDS)
        self._pause(self.observer.observe(self.clock()), "Stopped; the same command goes on.")

    def _wait_for_pods(self, seconds: float, *, or_stops: int = 2**31) -> None:
        until = self.clock() + timedelta(seconds=seconds)
        while self.controller.active_pods and self.wakeups.stops < or_stops:
            left = (until - self.clock()).total_seconds()
            if left <= 0:
                return
            for ended in self.wakeups.wait(left):
                self.controller.finish(ended)

    def _pause(self, observed: Observed, why: str) -> None:
        """Store the status as of a suspended job: no attempt runs, and none is counted.

        `why` stands in place of the plan's own reason, that spec.suspend is true.
        """
        suspended = self.job.model_copy(
            update={"spec": self.job.spec.model_copy(update={"suspend": True})}
        )
        result = plan(suspended, observed, self.clock(), self.settings)
        self.job = self.job.model_copy(update={"status": _stopped(result.status, why)})
        self._save()
        self.view.update(self.job.status, observed.progress)

    def _reached(self, status: PretrainJobStatus) -> bool:
        return any(
            stage.name == self.until and stage.state in ("Complete", "Skipped")
            for stage in status.stages
        )

    def _end_all_pods(self) -> None:
        """On whatever way out: no process outlives the run."""
        self.controller.kill()
        self._wait_for_pods(_KILL_SECONDS)


def _stopped(status: PretrainJobStatus, why: str) -> PretrainJobStatus:
    """The status of a suspended job, telling who suspended it."""
    conditions = [
        item.model_copy(update={"reason": "Stopped", "message": why})
        if item.type == "Suspended"
        else item
        for item in status.conditions
    ]
    return status.model_copy(update={"blocked_by": why, "conditions": conditions})


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)


def _without_figures(status: PretrainJobStatus) -> PretrainJobStatus:
    """What is written at once when it changes; the rest may wait for a second."""
    stages = [stage.model_copy(update={"message": ""}) for stage in status.stages]
    return status.model_copy(
        update={
            "stages": stages,
            "training": None,
            "goodput": None,
            "eta": "",
            "active_seconds": 0,
            "suspended_seconds": 0,
        }
    )
