"""A cluster in a few lines, for tests of the reconciler: objects in memory, and controllers that
do nothing by themselves. What it refuses, loses or delays is up to the test.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import orjson
from pretrain_api.reports import StageName, StageReport, StageResult
from pretrain_operator.cluster import Cluster
from pretrain_operator.errors import ApiError
from pretrain_operator.metrics import OperatorMetrics
from pretrain_operator.observe import JobKey
from pretrain_operator.observed import ChildRef, Manifest, Settings
from pretrain_operator.progress import Followed
from pretrain_operator.reconcile import Reconciler
from pretrain_operator.store import Store

from pretrain_testing.plan_simulator import SPEC, tokenizer_result

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE = "team-a"
Refuse = Callable[[Manifest], ApiError | None]


def denied(code: int, message: str, **details: Any) -> ApiError:
    """An API server's no."""
    return ApiError("PATCH", code=code, status={"message": message, "details": details})


def _allow(_: Manifest) -> ApiError | None:
    return None


def _do_nothing() -> None:
    return None


@dataclass
class FakeApi:
    """What the reconciler asks of an API server, with the requests it made."""

    store: Store
    now: Callable[[], datetime]
    objects: dict[tuple[str, str], Manifest] = field(default_factory=dict)
    events: list[Manifest] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    refuse: Refuse = _allow
    before_write: Callable[[], None] = _do_nothing
    version: int = 0

    async def apply(self, manifest: Manifest) -> Manifest:
        """Create a child; one that exists stays as it is."""
        self._note(f"apply {manifest['kind']}")
        error = self.refuse(manifest)
        if error is not None:
            raise error
        place = manifest["kind"], manifest["metadata"]["name"]
        return self.objects.get(place) or self.add(manifest)

    async def delete(self, child: ChildRef, *, namespace: str, uid: str) -> None:
        """Delete a child; its pods stay until the test lets them end."""
        self._note(f"delete {child.kind}")
        self._take(child.kind, child.name, namespace, uid)

    async def delete_job(self, *, namespace: str, name: str, uid: str) -> None:
        """Delete a PretrainJob and what it owns."""
        self._note("delete PretrainJob")
        self.store.jobs.remove(self._take("PretrainJob", name, namespace, uid))

    async def patch_status(
        self, *, namespace: str, name: str, version: str, status: Mapping[str, Any]
    ) -> Manifest:
        """Merge into the status of a PretrainJob of that version."""
        self._note("patch status")
        self.before_write()
        stored = self.objects["PretrainJob", name]
        if (namespace, version) != (NAMESPACE, stored["metadata"]["resourceVersion"]):
            raise denied(409, "the object has been modified")
        merged = {**stored, "status": _merged(stored.get("status") or {}, status)}
        return self.put(merged)

    async def post_event(self, event: Manifest) -> None:
        """Keep an event."""
        self._note("post event")
        self.events.append(event)

    def add(self, manifest: Manifest) -> Manifest:
        """Store a new object."""
        raw = _copy(manifest)
        name = raw["metadata"]["name"]
        raw["metadata"]["uid"] = f"uid-{self.version}-{name}"
        raw["metadata"]["creationTimestamp"] = f"{self.now():%Y-%m-%dT%H:%M:%SZ}"
        return self.put(raw)

    def put(self, raw: Manifest) -> Manifest:
        """Store another version of an object."""
        self.version += 1
        metadata = {**raw["metadata"], "resourceVersion": str(self.version)}
        stored = {**raw, "metadata": metadata}
        self.objects[raw["kind"], metadata["name"]] = stored
        return _copy(stored)

    def _take(self, kind: str, name: str, namespace: str, uid: str) -> Manifest:
        raw = self.objects.pop((kind, name))
        assert (namespace, uid) == (NAMESPACE, raw["metadata"]["uid"]), "another object"
        return raw

    def _note(self, request: str) -> None:
        self.requests.append(request)


class World:
    """One PretrainJob, its reconciler and a clock.

    `follow` answers what its pods told of their progress.
    """

    def __init__(self, *, name: str = "roberta-zh", figures_seconds: float = 10.0) -> None:
        self.now = START
        self.key: JobKey = (NAMESPACE, name)
        self.woken = 0
        self.followed = Followed()
        self.store = Store(job_changed=self._wake, children_changed=self._wake)
        self.api = FakeApi(self.store, self.clock)
        self.metrics = OperatorMetrics(version="test")
        self.restart(figures_seconds=figures_seconds)

    def restart(self, *, figures_seconds: float = 10.0) -> None:
        """Another operator process, which knows what the API server tells and no more."""
        self.reconciler = Reconciler(
            store=self.store,
            cluster=cast("Cluster", self.api),
            follower=_Follower(self),
            metrics=self.metrics,
            settings=Settings(),
            figures_seconds=figures_seconds,
            instance="operator-0",
            clock=self.clock,
            monotonic=self.monotonic,
        )

    def clock(self) -> datetime:
        """The world's time."""
        return self.now

    def monotonic(self) -> float:
        """Seconds since the world began."""
        return (self.now - START).total_seconds()

    def create(self, **spec: Any) -> None:
        """A user's `kubectl create`."""
        self.create_raw({**SPEC, **spec})

    def create_raw(self, spec: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> None:
        """An object as it may be stored, whatever its spec."""
        raw = {
            "apiVersion": "pretrain.dev/v1alpha1",
            "kind": "PretrainJob",
            "metadata": {"name": self.key[1], "namespace": NAMESPACE, "generation": 1},
            "spec": dict(spec),
            "status": dict(status or {}),
        }
        self.store.jobs.put(self.api.add(raw))

    def edit(self, **spec: Any) -> None:
        """A user's `kubectl edit` of the spec."""
        raw = self.raw
        metadata = {**raw["metadata"], "generation": raw["metadata"]["generation"] + 1}
        changed = {**raw, "metadata": metadata, "spec": {**raw["spec"], **spec}}
        self.store.jobs.put(self.api.put(changed))

    def annotate(self, **annotations: str) -> None:
        """A user's `kubectl annotate` with pretrain.dev/NAME, which leaves the generation alone."""
        given = {f"pretrain.dev/{k.replace('_', '-')}": v for k, v in annotations.items()}
        metadata = self.raw["metadata"]
        merged = {**metadata, "annotations": {**metadata.get("annotations", {}), **given}}
        self.store.jobs.put(self.api.put({**self.raw, "metadata": merged}))

    def reconcile(self) -> float | None:
        """One turn; when the next one is due."""
        self.woken = 0
        return _finish(self.reconciler.reconcile(self.key))

    def settle(self) -> float | None:
        """Turns for as long as something wakes the job."""
        due = self.reconcile()
        while self.woken:
            due = self.reconcile()
        return due

    def wait(self, seconds: float) -> float | None:
        """Let time pass, then settle."""
        self.now += timedelta(seconds=seconds)
        return self.settle()

    def run(self, stage: StageName) -> None:
        """All pods of a stage's newest Job run."""
        job = self.child(stage)
        for index in range(job["spec"]["completions"]):
            self._put_pod(job, index, {"phase": "Running", "podIP": f"10.0.0.{index + 1}"})
        self.settle()

    def run_pod(self, stage: StageName, index: int) -> None:
        """One pod of a stage's newest Job runs."""
        self._put_pod(self.child(stage), index, {"phase": "Running", "podIP": "10.0.0.1"})
        self.settle()

    def succeed(self, stage: StageName) -> None:
        """All pods of a stage's newest Job succeed, and the Job with them."""
        job = self.child(stage)
        result = tokenizer_result() if stage == "tokenizer" else StageResult()
        attempt = int(job["metadata"]["labels"]["pretrain.dev/attempt"])
        for index in range(job["spec"]["completions"]):
            report = StageReport(stage=stage, index=index, attempt=attempt, result=result)
            self._put_pod(job, index, _ended("Succeeded", 0, self._moment, report))
        self._complete(job, "Complete", succeeded=job["spec"]["completions"])
        self.settle()

    def fail(self, stage: StageName, *, exit_code: int) -> None:
        """Every pod of a stage's newest Job fails, and the Job with them."""
        job = self.child(stage)
        for index in range(job["spec"]["completions"]):
            self._put_pod(job, index, _ended("Failed", exit_code, self._moment))
        self._complete(job, "Failed", failed=1)
        self.settle()

    def stop_pods(self, job: Manifest, report: StageReport) -> None:
        """The pods of a Job end as they were told to, each with a report; no turn is made."""
        for index in range(job["spec"]["completions"]):
            self._put_pod(job, index, _ended("Failed", 75, self._moment, report))

    def end_pods(self) -> None:
        """All pods whose Job is gone go as well."""
        jobs = {name for kind, name in self.api.objects if kind == "Job"}
        for (kind, name), raw in list(self.api.objects.items()):
            if kind == "Pod" and raw["metadata"]["labels"][_JOB_NAME] not in jobs:
                self.store.pods.remove(self.api.objects.pop((kind, name)))
        self.settle()

    def reach_training(self, **spec: Any) -> None:
        """Create a job and have it come to where the pods of its training run."""
        self.create(**spec)
        self.settle()
        for stage in ("tokenizer", "preprocess"):
            self.run(stage)
            self.succeed(stage)
        self.run("train")

    def run_to_the_end(self) -> None:
        """Every stage runs and succeeds at once."""
        self.settle()
        for stage in _STAGES:
            self.run(stage)
            self.succeed(stage)

    def child(self, stage: StageName) -> Manifest:
        """The newest child Job of a stage."""
        jobs = [
            raw
            for (kind, _), raw in self.api.objects.items()
            if kind == "Job" and raw["metadata"]["labels"]["pretrain.dev/stage"] == stage
        ]
        return max(jobs, key=lambda raw: int(raw["metadata"]["resourceVersion"]))

    def kinds(self) -> list[str]:
        """Kinds of all children there are."""
        return sorted(kind for kind, _ in self.api.objects if kind not in ("PretrainJob", "Pod"))

    def requests(self, request: str = "") -> int:
        """How many requests of a sort were made."""
        return sum(made.startswith(request) for made in self.api.requests)

    @property
    def raw(self) -> Manifest:
        """The PretrainJob as it is stored."""
        return self.api.objects["PretrainJob", self.key[1]]

    @property
    def status(self) -> dict[str, Any]:
        """Its status as it is stored."""
        stored: dict[str, Any] = self.raw["status"]
        return stored

    def condition(self, name: str) -> dict[str, Any]:
        """One of its conditions."""
        found: dict[str, Any] = next(c for c in self.status["conditions"] if c["type"] == name)
        return found

    @property
    def _moment(self) -> str:
        return f"{self.now:%Y-%m-%dT%H:%M:%SZ}"

    def _complete(self, job: Manifest, condition: str, **counts: int) -> None:
        told = {"type": condition, "status": "True", "lastTransitionTime": self._moment}
        status = {**counts, "conditions": [told], "completionTime": self._moment}
        self.store.child_jobs.put(self.api.put({**job, "status": status}))

    def _put_pod(self, job: Manifest, index: int, status: Manifest) -> None:
        name = f"{job['metadata']['name']}-{index}"
        raw = self.api.objects.get(("Pod", name)) or self.api.add(
            {
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": NAMESPACE,
                    "labels": {
                        **job["metadata"]["labels"],
                        _JOB_NAME: job["metadata"]["name"],
                        "batch.kubernetes.io/job-completion-index": str(index),
                    },
                },
                "spec": job["spec"]["template"]["spec"],
            }
        )
        self.store.pods.put(self.api.put({**raw, "status": status}))

    def _wake(self, key: JobKey) -> None:
        self.woken += key == self.key


_JOB_NAME = "batch.kubernetes.io/job-name"
_STAGES: tuple[StageName, ...] = ("tokenizer", "preprocess", "train", "evaluate", "export")


@dataclass(frozen=True)
class _Follower:
    world: World

    def of(self, _: str) -> Followed:
        return self.world.followed

    def forget(self, _: str) -> None:
        self.world.followed = Followed()


def _finish(work: Coroutine[Any, Any, float | None]) -> float | None:
    """The result of a coroutine that never waits, as nothing here makes it wait."""
    try:
        work.send(None)
    except StopIteration as end:
        result: float | None = end.value
        return result
    raise AssertionError("the reconciler waits for something that this cluster does not have")


def _copy(raw: Manifest) -> Manifest:
    copied: Manifest = orjson.loads(orjson.dumps(raw))
    return copied


def _ended(phase: str, code: int, moment: str, report: StageReport | None = None) -> Manifest:
    ended = {"exitCode": code, "startedAt": moment, "finishedAt": moment}
    if report is not None:
        ended["message"] = report.model_dump_json(by_alias=True, exclude_none=True)
    return {"phase": phase, "containerStatuses": [{"name": "main", "state": {"terminated": ended}}]}


def _merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7396."""
    merged = dict(old)
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            before = merged.get(name)
            merged[name] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            merged[name] = value
    return merged
