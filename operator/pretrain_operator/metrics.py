"""Metrics of the operator, for Prometheus: about the jobs, and about itself.

This is the one place of their names. Series of a job are made at scrape time from its last
status, so that they cost nothing while nobody asks, and go with the job. Values of labels come
from closed sets, but for the names of jobs; no pod, uid or attempt is in any. What training has
to say of itself is served by its rank 0.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Literal, get_args

from pretrain_api.job import PretrainJob
from pretrain_api.resolve import architecture_of, objective_names
from pretrain_api.status import Phase, StageStatus
from prometheus_client import (
    CONTENT_TYPE_PLAIN_0_0_4,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""What `OperatorMetrics.render` gives; every Prometheus server reads it."""

ReconcileError = Literal["api", "conflict", "invalid", "internal", "leadership"]
PollOutcome = Literal["ok", "empty", "unreachable", "invalid"]

JOB_LABELS = ("namespace", "job")
RECONCILE_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class OperatorMetrics:
    """All metrics of one operator process, in a registry of their own."""

    def __init__(self, *, version: str, clock: Callable[[], float] = time.time) -> None:
        """`clock` gives seconds since the epoch."""
        self.registry = CollectorRegistry()
        self._clock = clock
        self._jobs = _Jobs(clock)
        self.registry.register(self._jobs)
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._reconcile_seconds = Histogram(
            "pretrain_operator_reconcile_duration_seconds",
            "Time from the beginning to the end of one reconcile of one job.",
            buckets=RECONCILE_BUCKETS,
            registry=self.registry,
        )
        self._reconcile_errors = self._counter(
            "pretrain_operator_reconcile_errors",
            "Reconciles that did not come to their end, by reason.",
            "reason",
        )
        self._requests = self._counter(
            "pretrain_operator_api_requests",
            "Requests to the API server, by verb, resource and status code (0: no answer).",
            *("verb", "resource", "code"),
        )
        self._polls = self._counter(
            "pretrain_operator_progress_polls",
            "Requests for the progress of running pods, by outcome.",
            "outcome",
        )
        self._queue_depth = self._gauge("queue_depth", "Jobs that wait to be reconciled.")
        self._last_reconcile = self._gauge(
            "last_reconcile_timestamp_seconds", "When a reconcile or resync last came to its end."
        )
        self._leader = self._gauge("is_leader", "1 while this process holds the lease, else 0.")
        build = Gauge(
            "pretrain_operator_build_info",
            "1, with the version of the operator.",
            ["version"],
            registry=self.registry,
        )
        build.labels(version).set(1)
        for reason in get_args(ReconcileError):
            self._reconcile_errors.labels(reason)
        for outcome in get_args(PollOutcome):
            self._polls.labels(outcome)

    def observe_reconcile(self, seconds: float) -> None:
        """Note a reconcile that came to its end."""
        self._reconcile_seconds.observe(seconds)
        self.note_resync()

    def note_resync(self) -> None:
        """Note that the operator is at work, though there was nothing to do."""
        self._last_reconcile.set(self._clock())

    def reconcile_error(self, reason: ReconcileError) -> None:
        """Note a reconcile that will be tried again."""
        self._reconcile_errors.labels(reason).inc()

    def api_request(self, verb: str, resource: str, code: int) -> None:
        """Note a request to the API server; `code` is 0 when there was no answer."""
        self._requests.labels(verb, resource, str(code)).inc()

    def api_request_total(self) -> float:
        """How many requests were made in all, not counting watches."""
        return sum(
            sample.value
            for family in self._requests.collect()
            for sample in family.samples
            if sample.name.endswith("_total") and sample.labels["verb"] != "watch"
        )

    def progress_poll(self, outcome: PollOutcome) -> None:
        """Note a request for a pod's progress."""
        self._polls.labels(outcome).inc()

    def set_queue_depth(self, depth: int) -> None:
        """Set how many jobs wait to be reconciled."""
        self._queue_depth.set(depth)

    def set_leader(self, leader: bool) -> None:
        """Set whether this process holds the lease."""
        self._leader.set(leader)

    def set_job(self, job: PretrainJob) -> None:
        """Show a job as it is now, in place of what it was."""
        self._jobs.jobs[job.metadata.namespace, job.metadata.name] = job

    def forget_job(self, namespace: str, name: str) -> None:
        """Take away all series of a job that is gone."""
        self._jobs.jobs.pop((namespace, name), None)

    def render(self) -> bytes:
        """All metrics as text, in the format that `CONTENT_TYPE` names."""
        return generate_latest(self.registry)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(name, text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str) -> Gauge:
        return Gauge(f"pretrain_operator_{name}", text, registry=self.registry)


class _Jobs(Collector):
    """The jobs that there are; their series are made when they are asked for."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.jobs: dict[tuple[str, str], PretrainJob] = {}
        self._clock = clock

    def describe(self) -> Iterable[Metric]:
        """The names alone, for the registry."""
        return list(_families({}, now=0.0))

    def collect(self) -> Iterable[Metric]:
        """All families with the series of all jobs; another thread may change those meanwhile."""
        return list(_families(dict(self.jobs), now=self._clock()))


_Samples = Iterator[tuple[tuple[str, ...], float]]
_Told = Callable[[PretrainJob, float], _Samples]


def _families(jobs: dict[tuple[str, str], PretrainJob], *, now: float) -> Iterator[Metric]:
    for name, (text, labels, tell) in _JOB_FAMILIES.items():
        counts = name.endswith("_total")
        kind = CounterMetricFamily if counts else GaugeMetricFamily
        family = kind(name, text, labels=(*JOB_LABELS, *labels))
        for key, job in jobs.items():
            for values, value in tell(job, now):
                family.add_metric((*key, *values), value)
        yield family


def _info(job: PretrainJob, _now: float) -> _Samples:
    architecture = architecture_of(job.spec)
    said = objective_names(job.spec)
    objective = said[0] if said else (architecture.objective if architecture else "")
    name = architecture.name if architecture else ""
    yield (name, objective, job.spec.scheduling.queue_name or ""), 1.0


def _phases(job: PretrainJob, _now: float) -> _Samples:
    for phase in Phase:
        yield (phase.value,), float(job.status.phase is phase)


def _conditions(job: PretrainJob, _now: float) -> _Samples:
    for condition in job.status.conditions:
        if condition.status != "Unknown":
            yield (condition.type,), float(condition.status == "True")


def _stage_durations(job: PretrainJob, now: float) -> _Samples:
    for stage in job.status.stages:
        if stage.start_time is not None:
            ended = _end_of(stage, job)
            end = now if ended is None else ended.timestamp()
            yield (stage.name,), max(0.0, end - stage.start_time.timestamp())


def _end_of(stage: StageStatus, job: PretrainJob) -> datetime | None:
    return stage.completion_time or job.status.completion_time


def _restarts(job: PretrainJob, _now: float) -> _Samples:
    for cause, count in job.status.restarts.items():
        yield (cause,), float(count)


def _workers(job: PretrainJob, _now: float) -> _Samples:
    yield ("ready",), float(job.status.workers.ready)
    yield ("desired",), float(job.status.workers.desired)


def _goodput(job: PretrainJob, _now: float) -> _Samples:
    if job.status.goodput is not None:
        for category, seconds in job.status.goodput.seconds.items():
            yield (category,), seconds


def _goodput_ratio(job: PretrainJob, _now: float) -> _Samples:
    if job.status.goodput is not None and job.status.goodput.ratio is not None:
        yield (), job.status.goodput.ratio


def _step(job: PretrainJob, _now: float) -> _Samples:
    if job.status.training is not None:
        yield (), float(job.status.training.step)


def _max_steps(job: PretrainJob, _now: float) -> _Samples:
    if job.status.training is not None:
        yield (), float(job.status.training.max_steps)


def _checkpoint_step(job: PretrainJob, _now: float) -> _Samples:
    if job.status.checkpoint is not None:
        yield (), float(job.status.checkpoint.step)


def _checkpoint_time(job: PretrainJob, _now: float) -> _Samples:
    if job.status.checkpoint is not None:
        yield (), job.status.checkpoint.time.timestamp()


def _created(job: PretrainJob, _now: float) -> _Samples:
    if job.metadata.creation_timestamp is not None:
        yield (), job.metadata.creation_timestamp.timestamp()


_JOB_FAMILIES: dict[str, tuple[str, tuple[str, ...], _Told]] = {
    "pretrain_job_info": (
        "1, with what is trained.",
        ("architecture", "objective", "queue"),
        _info,
    ),
    "pretrain_job_created_timestamp_seconds": ("When the job was created.", (), _created),
    "pretrain_job_status_phase": ("1 for the phase of the job, else 0.", ("phase",), _phases),
    "pretrain_job_condition": (
        "1 where a condition is True, 0 where it is False; none where it is Unknown.",
        ("condition",),
        _conditions,
    ),
    "pretrain_job_stage_duration_seconds": (
        "Time from the first attempt of a stage to its end, or until now.",
        ("stage",),
        _stage_durations,
    ),
    "pretrain_job_restarts_total": ("Restarts of attempts, by cause.", ("cause",), _restarts),
    "pretrain_job_workers": ("Training pods that run, and that should.", ("state",), _workers),
    "pretrain_job_goodput_seconds_total": (
        "Time of training over all attempts by what it went into: rank 0's own, and queued, "
        "suspended, lost where no process of its was at work.",
        ("category",),
        _goodput,
    ),
    "pretrain_job_goodput_ratio": (
        "Share of training's time over all attempts, suspended time left out, that went into "
        "steps and evaluation.",
        (),
        _goodput_ratio,
    ),
    "pretrain_job_step": ("Optimizer steps done, as last polled.", (), _step),
    "pretrain_job_max_steps": ("Optimizer steps of the whole training.", (), _max_steps),
    "pretrain_job_last_checkpoint_step": ("Step of the newest commit.", (), _checkpoint_step),
    "pretrain_job_last_checkpoint_timestamp_seconds": (
        "When the newest checkpoint was committed.",
        (),
        _checkpoint_time,
    ),
}
"""Per job: name of the family, its HELP, its labels beside the job's own, and its series."""
