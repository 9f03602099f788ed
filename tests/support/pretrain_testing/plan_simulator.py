"""A world in a few lines for tests of the plan: it carries plans out and lets children live.

`Simulation.plan` does what an executor does, in its order, and stores the status as JSON, as an
API server would. Nothing happens by itself: a test lets pods run, fail and succeed, and moves the
clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pretrain_api.job import PretrainJob
from pretrain_api.reports import (
    STAGES,
    Artifact,
    Cause,
    CheckpointStatus,
    StageName,
    StageProgress,
    StageReport,
    StageResult,
    TrainingStatus,
)
from pretrain_api.status import Condition, Phase, PretrainJobStatus, StageStatus
from pretrain_api.timesheet import TimeSheet
from pretrain_operator.observe import remember
from pretrain_operator.observed import (
    ChildRef,
    Event,
    Manifest,
    Observed,
    ObservedJob,
    ObservedPod,
    Refusal,
    Settings,
)
from pretrain_operator.plan import Plan, plan

START = datetime(2026, 1, 1, tzinfo=UTC)
UID = "0a1b2c3d-0000-4000-8000-000000000001"
SPEC: dict[str, Any] = {
    "storage": {"uri": "s3://models/zh", "credentialsSecret": "s3-credentials"},
    "corpus": {"sources": [{"uri": "corpora/wiki/"}]},
    "model": {"architecture": "bert"},
    "workers": {"replicas": 2},
    "evaluation": {"tasks": [{"name": "sentiment", "data": {"uri": "tasks/sentiment.jsonl"}}]},
}


def make_job(name: str = "roberta-zh", **spec: Any) -> PretrainJob:
    """A valid job; keyword arguments replace sections of its spec."""
    return PretrainJob.model_validate(
        {
            "apiVersion": "pretrain.dev/v1alpha1",
            "kind": "PretrainJob",
            "metadata": {"name": name, "namespace": "team-a", "uid": UID},
            "spec": {**SPEC, **spec},
        }
    )


def tokenizer_result(*, slices: int = 3, cached: frozenset[StageName] = frozenset()) -> StageResult:
    """What a tokenizer stage reports, its fingerprints told by the stages' names."""
    artifacts = [
        Artifact(
            stage=stage,
            fingerprint=f"{stage}-fp",
            uri=f"s3://models/zh/{stage}/{stage}-fp",
            cached=stage in cached,
        )
        for stage in STAGES
    ]
    return StageResult(artifacts=artifacts, slices=slices)


def commit(step: int) -> CheckpointStatus:
    """A committed checkpoint."""
    return CheckpointStatus(step=step, uri=f"s3://c/step-{step}", sha256="0" * 64, time=START)


@dataclass
class Simulation:
    """One job, its children and a clock."""

    job: PretrainJob
    settings: Settings = field(default_factory=Settings)
    now: datetime = START
    observed: Observed = field(default_factory=Observed)
    events: list[Event] = field(default_factory=list)
    created: list[str] = field(default_factory=list)
    writes: int = 0
    refuse: Callable[[Manifest], tuple[int, str] | None] = lambda _manifest: None
    """What the API server answers instead of taking a child: a code and a message."""

    def plan(self) -> Plan:
        """Plan once and carry it out: apply, status, events, delete.

        After a refusal the rest is dropped, and it is planned again with it.
        """
        made = plan(self.job, self.observed, self.now, self.settings)
        for manifest in made.apply:
            answer = self.refuse(manifest)
            if answer is not None:
                self._remember(manifest, *answer)
                return self.plan()
            self._create(manifest)
        self._store(made)
        self.events += made.events
        for child in made.delete:
            self._delete(child)
        return made

    def settle(self) -> None:
        """Plan until nothing changes any more."""
        for _ in range(20):
            before = (self.job, self.observed)
            self.plan()
            if (self.job, self.observed) == before:
                return
        raise AssertionError("the plan does not come to rest")

    def wait(self, seconds: float) -> None:
        """Let time pass, then settle."""
        self.now += timedelta(seconds=seconds)
        self.settle()

    def child(self, stage: StageName) -> ObservedJob:
        """The newest child Job of a stage."""
        jobs = [job for job in self.observed.jobs if job.stage == stage]
        return max(jobs, key=lambda job: job.attempt)

    def child_names(self, stage: StageName) -> list[str]:
        """Names of all child Jobs of a stage."""
        return [job.name for job in self.observed.jobs if job.stage == stage]

    def change(self, stage: StageName, **changes: Any) -> None:
        """Change what is observed of a stage's newest Job."""
        changed = self.child(stage)
        jobs = [replace(j, **changes) if j == changed else j for j in self.observed.jobs]
        self.observed = replace(self.observed, jobs=tuple(jobs))

    def run(self, stage: StageName) -> None:
        """Every pod of a stage's newest Job runs."""
        job = self.child(stage)
        count = min(job.completions, 64)
        pods = tuple(
            ObservedPod(
                name=f"{job.name}-{i}",
                index=i,
                phase="Running",
                node=f"node-{i}",
                started_at=self.now,
            )
            for i in range(count)
        )
        self.change(stage, pods=pods, active=count)
        self.settle()

    def succeed(self, stage: StageName, result: StageResult | None = None) -> None:
        """Every pod of a stage's newest Job succeeds, index 0 with a result."""
        job = self.child(stage)
        report = StageReport(stage=stage, attempt=job.attempt, result=result or StageResult())
        pods = tuple(
            replace(
                pod,
                phase="Succeeded",
                exit_code=0,
                finished_at=self.now,
                report=report if pod.index == 0 else None,
            )
            for pod in job.pods
        )
        self.change(
            stage,
            pods=pods,
            active=0,
            succeeded=job.completions,
            condition="Complete",
            finished_at=self.now,
        )
        self.settle()

    def change_pod(self, stage: StageName, index: int, **changes: Any) -> None:
        """Change what is observed of one pod, without planning."""
        pods = [
            replace(pod, **changes) if pod.index == index else pod for pod in self.child(stage).pods
        ]
        self.change(stage, pods=tuple(pods))

    def fail_pod(self, stage: StageName, index: int, **changes: Any) -> None:
        """One pod fails now, and the others are ended by the Job controller."""
        ended = {"phase": "Failed", "exit_code": 1, "finished_at": self.now, **changes}
        self.change_pod(stage, index, **ended)
        for pod in self.child(stage).pods:
            if pod.phase == "Running":
                later = self.now + timedelta(seconds=1)
                self.change_pod(
                    stage, pod.index, phase="Failed", exit_code=75, finished_at=later, deleting=True
                )
        self.change(stage, condition="Failed", active=0, failed=1)
        self.settle()

    def report_failure(self, stage: StageName, index: int, cause: Cause, **report: Any) -> None:
        """One pod fails with a report."""
        made = StageReport(stage=stage, index=index, cause=cause, **report)
        self.fail_pod(stage, index, report=made)

    def progress(
        self, step: int, *, committed: int | None = None, time_sheet: TimeSheet | None = None
    ) -> None:
        """Rank 0 of the newest training attempt reports a step, perhaps a commit and its time."""
        progress = StageProgress(
            stage="train",
            attempt=self.child("train").attempt,
            training=TrainingStatus(step=step, max_steps=1000, loss=1.5),
            checkpoint=commit(committed) if committed is not None else None,
            time_sheet=time_sheet,
        )
        self.observed = replace(self.observed, progress=(progress,), stepped_at=self.now)
        self.settle()

    def suspend(self, *, on: bool) -> None:
        """Set spec.suspend."""
        self.edit(suspend=on)
        self.settle()

    def edit(self, **spec: Any) -> None:
        """Edit fields of the spec, as kubectl would, without planning."""
        metadata = self.job.metadata
        generation = metadata.model_copy(update={"generation": metadata.generation + 1})
        changed = self.job.spec.model_copy(update=spec)
        self.job = self.job.model_copy(update={"spec": changed, "metadata": generation})

    def annotate(self, **annotations: str) -> None:
        """Set annotations pretrain.dev/NAME, dashes for underscores, without planning."""
        metadata = self.job.metadata
        set_now = {f"pretrain.dev/{k.replace('_', '-')}": v for k, v in annotations.items()}
        changed = metadata.model_copy(update={"annotations": {**metadata.annotations, **set_now}})
        self.job = self.job.model_copy(update={"metadata": changed})

    def until(self, stage: StageName, *, slices: int = 3) -> None:
        """Run the job to where the pods of a stage run; a new job like one before is there."""
        told = self.job.model_dump_json(exclude_unset=True)
        beginning = (told, repr(self.settings), stage, slices)
        new = self == Simulation(self.job, self.settings)
        if new and beginning in _REACHED:
            self._continue_from(_REACHED[beginning])
            return
        self._run_until(stage, slices)
        if new:
            reached = _REACHED[beginning] = Simulation(self.job, self.settings)
            reached._continue_from(self)

    def stage(self, name: StageName) -> StageStatus:
        """The status of one stage."""
        return next(stage for stage in self.job.status.stages if stage.name == name)

    def phase(self) -> Phase:
        """The job's phase."""
        return self.job.status.phase

    def services(self) -> list[str]:
        """Names of all Services."""
        return list(self.observed.services)

    def condition(self, name: str) -> Condition:
        """One condition of the job."""
        return next(c for c in self.job.status.conditions if c.type == name)

    def event_reasons(self) -> list[str]:
        """Reasons of all events so far."""
        return [event.reason for event in self.events]

    def _run_until(self, stage: StageName, slices: int) -> None:
        before = STAGES[: STAGES.index(stage)]
        if before:
            self.until(before[-1], slices=slices)
            result = tokenizer_result(slices=slices) if before[-1] == "tokenizer" else None
            self.succeed(before[-1], result)
        else:
            self.settle()
        self.run(stage)

    def _continue_from(self, other: Simulation) -> None:
        self.job, self.now, self.observed = other.job, other.now, other.observed
        self.events, self.created = [*other.events], [*other.created]
        self.writes = other.writes

    def _store(self, made: Plan) -> None:
        if made.status == self.job.status:
            return
        self.writes += 1
        stored = made.status.model_dump_json(by_alias=True)
        if PretrainJobStatus.model_validate_json(stored) != made.status:
            raise AssertionError("the status does not survive being stored")
        self.job = self.job.model_copy(update={"status": made.status})

    def _create(self, manifest: Manifest) -> None:
        name: str = manifest["metadata"]["name"]
        self.created.append(f"{manifest['kind']}/{name}")
        match manifest["kind"]:
            case "Service":
                self.observed = replace(self.observed, services=(*self.observed.services, name))
            case "ConfigMap":
                maps = (*self.observed.config_maps, name)
                self.observed = replace(self.observed, config_maps=maps)
            case _:
                job = _observed_job(manifest, self.now)
                self.observed = replace(self.observed, jobs=(*self.observed.jobs, job))

    def _remember(self, manifest: Manifest, code: int, message: str) -> None:
        labels = manifest["metadata"]["labels"]
        refusal = Refusal(
            stage=labels["pretrain.dev/stage"],
            attempt=int(labels["pretrain.dev/attempt"]),
            kind=manifest["kind"],
            code=code,
            message=message,
            generation=self.job.metadata.generation,
            at=self.now,
        )
        known = remember(self.observed.refusals, refusal)
        self.observed = replace(self.observed, refusals=known)

    def _delete(self, child: ChildRef) -> None:
        seen = self.observed
        self.observed = replace(
            seen,
            jobs=tuple(j for j in seen.jobs if child != ChildRef("Job", j.name)),
            services=tuple(n for n in seen.services if child != ChildRef("Service", n)),
            config_maps=tuple(n for n in seen.config_maps if child != ChildRef("ConfigMap", n)),
        )


_REACHED: dict[tuple[str, str, StageName, int], Simulation] = {}
"""Where simulations of new jobs came to: hundreds of tests begin with the same few."""


def _observed_job(manifest: Manifest, now: datetime) -> ObservedJob:
    labels: Mapping[str, str] = manifest["metadata"]["labels"]
    stage = next(name for name in STAGES if name == labels["pretrain.dev/stage"])
    return ObservedJob(
        name=manifest["metadata"]["name"],
        stage=stage,
        attempt=int(labels["pretrain.dev/attempt"]),
        created_at=now,
        completions=manifest["spec"]["completions"],
        generation=int(manifest["metadata"]["annotations"]["pretrain.dev/generation"]),
    )
