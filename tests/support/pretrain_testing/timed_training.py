"""A training whose every second is known: the plan and rank 0's books on one virtual clock.

The plan runs in a `Simulation`, rank 0 keeps the books of the real process, and what the next
attempt is told comes from the config that the plan made for it. `spent` has the truth.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from pretrain_api.reports import StageResult
from pretrain_api.stages import TrainStageConfig
from pretrain_api.status import GoodputStatus
from pretrain_api.timesheet import TimeSheet
from pretrain_jobs.train.goodput import Category, Goodput
from pretrain_operator.observed import Manifest

from pretrain_testing.plan_simulator import START, Simulation, make_job

POLICY = {
    "restarts": [{"cause": "Infrastructure", "limit": 1000}],
    "noProgressRestarts": 1000,
    "backoff": {"initialSeconds": 0, "maximumSeconds": 0},
}


@dataclass
class TimedTraining:
    """One job in training. Its time passes only in what is done here.

    `spent` are seconds by category, those of rank 0 once they were stored or told; until then
    they are in `unheard`, and a kill loses them.
    """

    sim: Simulation = field(default_factory=lambda: Simulation(make_job(failurePolicy=POLICY)))
    spent: Counter[str] = field(default_factory=Counter)
    unheard: Counter[str] = field(default_factory=Counter)
    stored: tuple[int, TimeSheet | None] = (0, None)
    """Step and time sheet of the newest checkpoint."""

    step: int = 0
    reached: int = 0
    """The last step that the plan has heard of."""

    rank_0: Goodput | None = None
    suspended: bool = False
    told: TrainStageConfig = field(init=False)
    """The config of the newest attempt."""

    def __post_init__(self) -> None:
        self.sim.refuse = self._look
        self.sim.until("preprocess")
        self.sim.succeed("preprocess")
        self.began = self.sim.now

    @property
    def goodput(self) -> GoodputStatus:
        """What status tells."""
        told = self.sim.job.status.goodput
        assert told is not None
        return told

    def wait(self, seconds: int) -> None:
        """Time passes: in the queue, in a suspension, or in rank 0's loop."""
        self._pass(seconds)
        self.sim.settle()

    def run(self, seconds: int) -> None:
        """All pods run, and rank 0 takes so long to begin."""
        if self.rank_0 is not None or self.suspended:
            return
        self.sim.run("train")
        self.step, sheet = self.stored
        self.rank_0 = Goodput(self._seconds, wall=lambda: self.sim.now)
        self._pass(seconds, "init")
        self.rank_0.go_on_from(sheet, self.told.earlier)
        self.rank_0.enter("idle")

    def train(self, seconds: int) -> None:
        """Rank 0 makes a step."""
        if self.rank_0 is not None:
            earlier = self.told.earlier.step if self.told.earlier else 0
            category: Category = "recompute" if self.step < earlier else "step"
            with self.rank_0.during(category):
                self._pass(seconds, "recompute" if self.step < self.reached else "step")
            self.step += 1

    def save(self, seconds: int) -> None:
        """A checkpoint with the time up to when it began, which is committed after so long."""
        if self.rank_0 is not None:
            self.stored = self.step, self.rank_0.sheet
            self._hear()
            with self.rank_0.during("checkpoint_stall"):
                self._pass(seconds, "checkpoint_stall")

    def poll(self) -> None:
        """The plan hears of rank 0."""
        if self.rank_0 is not None:
            self._hear()
            self.reached = max(self.reached, self.step)
            self.sim.progress(self.step, time_sheet=self.rank_0.sheet)

    def kill(self) -> None:
        """Rank 0 is killed, which is noticed at once."""
        if self.rank_0 is not None:
            self._end()
            self.sim.fail_pod("train", 0, exit_code=71)

    def suspend(self, *, on: bool) -> None:
        """Suspend or resume the job."""
        if on != self.suspended:
            self._end()
            self.suspended = on
            self.sim.suspend(on=on)

    def finish(self) -> None:
        """Whatever was, training comes to its end."""
        self.suspend(on=False)
        self.run(0)
        assert self.rank_0 is not None
        self._hear()
        self.sim.succeed("train", StageResult(step=self.step, time_sheet=self.rank_0.sheet))

    def _look(self, manifest: Manifest) -> None:
        """See the config of a training attempt as it is applied."""
        if manifest["kind"] == "ConfigMap" and "-train-" in manifest["metadata"]["name"]:
            self.told = TrainStageConfig.model_validate_json(manifest["data"]["config.json"])

    def _pass(self, seconds: int, category: Category = "idle") -> None:
        """Let time pass; `category` is what rank 0 is in, if it lives."""
        self.sim.now += timedelta(seconds=seconds)
        if self.rank_0 is not None:
            self.unheard[category] += seconds
        else:
            self.spent["suspended" if self.suspended else "queued"] += seconds

    def _hear(self) -> None:
        self.spent += self.unheard
        self.unheard.clear()

    def _end(self) -> None:
        """Rank 0 is gone, and with it what nobody has heard of."""
        self.spent["lost"] += self.unheard.total()
        self.unheard.clear()
        self.rank_0 = None

    def _seconds(self) -> float:
        return (self.sim.now - START).total_seconds()
