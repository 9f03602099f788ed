"""PretrainJobs on a bed without nodes, where a test plays the kubelet for their pods."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Protocol

from pretrain_api.reports import STAGES, StageName, StageReport, StageResult

from pretrain_testing.plan_simulator import SPEC, tokenizer_result
from pretrain_testing.processes import wait_for

ADDRESS = "127.64.0.1"
"""Of pods: a loopback one, where nothing listens, so that whoever asks is refused at once."""

CHILDREN = ("jobs", "pods", "services", "configmaps")
LOOK_SECONDS = 0.1
INDEX = "batch.kubernetes.io/job-completion-index"

Raw = dict[str, Any]


class Api(Protocol):
    """Plain requests as the administrator; decoded answers, exceptions for errors."""

    def request(self, verb: str, path: str, body: Raw | None = None) -> Any:
        """Send one."""


@dataclass(frozen=True)
class PlayedJob:
    """One PretrainJob in a namespace, its children, and what the kubelet would do with them."""

    api: Api
    namespace: str
    name: str = "roberta-zh"

    def create(self, **spec: Any) -> PlayedJob:
        """Create the PretrainJob; keyword arguments replace sections of its spec."""
        job = {
            "apiVersion": "pretrain.dev/v1alpha1",
            "kind": "PretrainJob",
            "metadata": {"name": self.name},
            "spec": {**SPEC, **spec},
        }
        self.api.request("POST", self._jobs, job)
        return self

    def edit(self, **spec: Any) -> None:
        """Change fields of its spec."""
        self.api.request("PATCH", f"{self._jobs}/{self.name}", {"spec": spec})

    def finish(self) -> None:
        """Have it end without ever having run, as if an operator of old had run it."""
        self.put_status({"phase": "Complete", "completionTime": _now()})

    def put_status(self, status: Raw) -> None:
        """Change its status, as an operator would."""
        self.api.request("PATCH", f"{self._jobs}/{self.name}/status", {"status": status})

    def label(self, labels: dict[str, str]) -> None:
        """Label it."""
        path = f"{self._jobs}/{self.name}"
        self.api.request("PATCH", path, {"metadata": {"labels": labels}})

    def delete(self) -> None:
        """Delete it, in the background."""
        self.api.request("DELETE", f"{self._jobs}/{self.name}")

    def raw(self) -> Raw:
        """The PretrainJob as it is stored."""
        raw: Raw = self.api.request("GET", f"{self._jobs}/{self.name}")
        return raw

    def status(self) -> Raw:
        """Its status."""
        return self.raw().get("status") or {}

    def condition(self, name: str) -> Raw:
        """One of its conditions; empty before it has it."""
        conditions: list[Raw] = self.status().get("conditions") or []
        return next((c for c in conditions if c["type"] == name), {})

    def wait_for_phase(self, phase: str) -> Raw:
        """Wait for a phase; the status with it."""

        def look() -> Raw | None:
            status = self.status()
            return status if status.get("phase") == phase else None

        return wait_for(f"phase {phase}", look, every=LOOK_SECONDS)

    def wait_until_gone(self) -> None:
        """Wait until it is deleted, with all its children."""

        def gone() -> bool:
            return not self.exists() and not any(map(self.objects, CHILDREN))

        wait_for(f"the end of {self.name}", gone, every=LOOK_SECONDS)

    def exists(self) -> bool:
        """Whether it is stored."""
        jobs: list[Raw] = self.api.request("GET", self._jobs)["items"]
        return self.name in [job["metadata"]["name"] for job in jobs]

    def objects(self, kind: str) -> list[Raw]:
        """All its children of a kind (plural), and those of others of its name."""
        root = "apis/batch/v1" if kind == "jobs" else "api/v1"
        query = f"labelSelector=pretrain.dev%2Fjob%3D{self.name}"
        path = f"/{root}/namespaces/{self.namespace}/{kind}?{query}"
        items: list[Raw] = self.api.request("GET", path)["items"]
        return items

    def events(self) -> list[Raw]:
        """Events about the PretrainJob."""
        path = f"/api/v1/namespaces/{self.namespace}/events"
        about = f"involvedObject.kind%3DPretrainJob%2CinvolvedObject.name%3D{self.name}"
        query = f"fieldSelector={about}"
        items: list[Raw] = self.api.request("GET", f"{path}?{query}")["items"]
        return items

    def pods(self, stage: StageName, attempt: int = 0) -> list[Raw]:
        """The pods of an attempt, once the Job controller has made them all."""

        def all_of_them() -> list[Raw] | None:
            jobs = [job for job in self.objects("jobs") if _is_of(job, stage, attempt)]
            pods = [pod for pod in self.objects("pods") if _is_of(pod, stage, attempt)]
            wanted = jobs[0]["spec"]["parallelism"] if jobs else -1
            return pods if len(pods) == wanted else None

        what = f"pods of attempt {attempt} of {stage}"
        found = wait_for(what, all_of_them, every=LOOK_SECONDS)
        return sorted(found, key=_index)

    def wait_for_condition_of_child(self, stage: StageName, condition: str) -> None:
        """Wait until the Job of a stage's first attempt has a condition."""

        def look() -> bool:
            jobs = (job for job in self.objects("jobs") if _is_of(job, stage, 0))
            told = [c for job in jobs for c in job["status"].get("conditions") or ()]
            return any(c["type"] == condition and c["status"] == "True" for c in told)

        wait_for(f"{condition} of the Job of {stage}", look, every=LOOK_SECONDS)

    def run(self, stage: StageName, attempt: int = 0, *, ip: str = ADDRESS) -> None:
        """The pods of an attempt run, all with the same address."""
        for pod in self.pods(stage, attempt):
            state = {"running": {"startedAt": _now()}}
            self._put(pod, "Running", state, podIP=ip, podIPs=[{"ip": ip}])

    def succeed(
        self, stage: StageName, attempt: int = 0, *, cached: Iterable[StageName] = ()
    ) -> None:
        """The pods of an attempt succeed, each with its report.

        That of the tokenizer tells which stages' outputs an earlier run has committed.
        """
        result = StageResult()
        if stage == "tokenizer":
            result = tokenizer_result(slices=1, cached=frozenset(cached))
        for pod in self.pods(stage, attempt):
            report = StageReport(stage=stage, index=_index(pod), attempt=attempt, result=result)
            self.end(pod, exit_code=0, message=report.model_dump_json(by_alias=True))

    def succeed_pod(self, pod: Raw, stage: StageName) -> None:
        """One pod of a stage's first attempt succeeds with a report, as if it were the stage's."""
        result = tokenizer_result(slices=1) if stage == "tokenizer" else StageResult()
        report = StageReport(stage=stage, index=_index(pod), result=result)
        self.end(pod, exit_code=0, message=report.model_dump_json(by_alias=True))

    def end(self, pod: Raw, *, exit_code: int, message: str = "") -> None:
        """A pod's container ends."""
        ended = {
            "exitCode": exit_code,
            "reason": "Error" if exit_code else "Completed",
            "message": message,
            "startedAt": _now(),
            "finishedAt": _now(),
        }
        self._put(pod, "Failed" if exit_code else "Succeeded", {"terminated": ended})

    def delete_pod(self, pod: Raw) -> None:
        """`kubectl delete pod`; without a node it goes at once."""
        self.api.request("DELETE", f"{self._pods}/{pod['metadata']['name']}")

    def hold(self, pod: Raw) -> None:
        """Keep a pod from going when it is deleted, as a node that is lost does."""
        self._change_pod(pod, {"finalizers": ["pretrain.dev/held-by-a-test"]})

    def let_go(self, pod: Raw) -> None:
        """Let a pod go that was held."""
        self._change_pod(pod, {"finalizers": []})

    def delete_children(self) -> None:
        """Delete everything that its stages have left."""
        for kind in ("jobs", "configmaps"):
            root = "apis/batch/v1" if kind == "jobs" else "api/v1"
            for child in self.objects(kind):
                path = f"/{root}/namespaces/{self.namespace}/{kind}/{child['metadata']['name']}"
                self.api.request("DELETE", path, {"propagationPolicy": "Background"})

    def forget_lease(self) -> None:
        """Delete the Lease of a killed operator, so that nobody has to wait for its end."""
        self.api.request("DELETE", self._lease)

    def leading_since(self) -> datetime:
        """When the operator that leads took the Lease."""
        lease: Raw = self.api.request("GET", self._lease)
        return datetime.fromisoformat(lease["spec"]["acquireTime"])

    def train(self, *, ip: str = ADDRESS) -> None:
        """Train on data that an earlier run has prepared."""
        self.run("tokenizer")
        self.succeed("tokenizer", cached=["preprocess"])
        self.run("train", ip=ip)
        self.wait_for_phase("Training")

    def run_until(self, stage: StageName) -> None:
        """Play every stage before this one, and let this one run."""
        for name in STAGES:
            self.run(name)
            if name == stage:
                return
            self.succeed(name)

    def play(self) -> None:
        """Every stage runs and succeeds."""
        for name in STAGES:
            self.run(name)
            self.succeed(name)

    def play_to_the_end(self) -> Raw:
        """The same; the status in the end."""
        self.play()
        return self.wait_for_phase("Complete")

    def _put(self, pod: Raw, phase: str, state: Raw, **status: Any) -> None:
        container = pod["spec"]["containers"][0]
        told = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "ready": phase == "Running",
            "restartCount": 0,
            "state": state,
        }
        body = {"status": {"phase": phase, "containerStatuses": [told], **status}}
        self.api.request("PATCH", f"{self._pods}/{pod['metadata']['name']}/status", body)

    def _change_pod(self, pod: Raw, metadata: Raw) -> None:
        path = f"{self._pods}/{pod['metadata']['name']}"
        self.api.request("PATCH", path, {"metadata": metadata})

    @property
    def _lease(self) -> str:
        leases = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        return f"{leases}/pretrain-operator"

    @property
    def _jobs(self) -> str:
        return f"/apis/pretrain.dev/v1alpha1/namespaces/{self.namespace}/pretrainjobs"

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"


def _is_of(raw: Raw, stage: StageName, attempt: int) -> bool:
    labels = raw["metadata"]["labels"]
    return bool(
        labels["pretrain.dev/stage"] == stage and labels["pretrain.dev/attempt"] == str(attempt)
    )


def _index(pod: Raw) -> int:
    return int(pod["metadata"]["labels"][INDEX])


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
