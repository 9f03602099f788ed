"""PretrainJobs in one namespace of a real cluster: apply, look, wait."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import yaml

KIND = "pretrainjobs.pretrain.dev"
STAGE_LABEL = "pretrain.dev/stage"
JOB_LABEL = "pretrain.dev/job"
PATIENCE_SECONDS = 900.0
"""Far more than any wait takes on a busy machine."""

POLL_SECONDS = 0.5
TERMINAL = ("Complete", "Failed")

_JOBS = "/apis/pretrain.dev/v1alpha1/namespaces/{}/pretrainjobs"

Manifest = dict[str, Any]


class Kubectl(Protocol):
    """kubectl as the bed's administrator; returns its output, raises when it fails."""

    def __call__(self, *arguments: str, stdin: str | None = None) -> str: ...


class Api(Protocol):
    """Plain requests as the administrator, without a process for each."""

    def get(self, path: str) -> Any: ...


@dataclass(frozen=True)
class ClusterJobs:
    """What a user does with PretrainJobs of a namespace; `api` makes looking at them cheap."""

    kubectl: Kubectl
    namespace: str
    api: Api | None = None

    def apply(self, job: Manifest) -> None:
        """`kubectl apply` of a manifest."""
        self._run("apply", "-f", "-", stdin=yaml.safe_dump(job, allow_unicode=True))

    def get(self, name: str) -> Manifest:
        """The job as the API server has it."""
        if self.api is None:
            return self._json("get", KIND, name)
        job: Manifest = self.api.get(f"{_JOBS.format(self.namespace)}/{name}")
        return job

    def status(self, name: str) -> Manifest:
        """Its status; empty before the operator has seen it."""
        status: Manifest = self.get(name).get("status", {})
        return status

    def patch_spec(self, name: str, **changes: Any) -> None:
        """Change fields of a job's spec."""
        patch = json.dumps({"spec": changes})
        self._run("patch", KIND, name, "--type=merge", "-p", patch)

    def scale(self, name: str, *, replicas: int) -> None:
        """`kubectl scale`."""
        self._run("scale", f"{KIND}/{name}", f"--replicas={replicas}")

    def delete(self, name: str) -> None:
        """`kubectl delete`, waiting until the job itself is gone."""
        self._run("delete", KIND, name, "--wait=true")

    def children(self, kinds: str, name: str, stage: str | None = None) -> list[Manifest]:
        """Objects of some kinds that belong to a job."""
        selector = f"{JOB_LABEL}={name}" + (f",{STAGE_LABEL}={stage}" if stage else "")
        items: list[Manifest] = self._json("get", kinds, "-l", selector)["items"]
        return items

    def delete_child(self, kind: str, child: Manifest) -> None:
        """Delete an object, without waiting for it to be gone."""
        self._run("delete", kind, child["metadata"]["name"], "--wait=false")

    def wait_until_gone(self, kinds: str, name: str, stage: str | None = None) -> None:
        """Wait until nothing of some kinds belongs to a job any more."""
        end = time.monotonic() + PATIENCE_SECONDS
        while left := self.children(kinds, name, stage):
            names = [f"{child['kind']} {child['metadata']['name']}" for child in left]
            assert time.monotonic() < end, f"still there: {names}"
            time.sleep(POLL_SECONDS)

    def events(self, name: str) -> list[Manifest]:
        """Events about the job itself."""
        selector = f"involvedObject.kind=PretrainJob,involvedObject.name={name}"
        items: list[Manifest] = self._json("get", "events", "--field-selector", selector)["items"]
        return items

    def wait_for_condition(self, name: str, condition: str) -> None:
        """`kubectl wait`, as a script would."""
        timeout = f"--timeout={PATIENCE_SECONDS:g}s"
        self._run("wait", f"--for=condition={condition}", f"{KIND}/{name}", timeout)

    def wait_for_child_condition(self, condition: str, name: str, stage: str) -> None:
        """`kubectl wait` for the child Jobs of one of a job's stages."""
        selector = f"{JOB_LABEL}={name},{STAGE_LABEL}={stage}"
        timeout = f"--timeout={PATIENCE_SECONDS:g}s"
        self._run("wait", "jobs", "-l", selector, f"--for=condition={condition}", timeout)

    def wait_for(
        self, name: str, what: str, holds: Callable[[Manifest], bool], *, may_fail: bool = False
    ) -> Manifest:
        """The first status for which something holds; an assertion fails when none comes.

        A job that ends before is not waited for.
        """
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            status = self.status(name)
            if holds(status):
                return status
            ended = status.get("phase") in TERMINAL
            assert not ended or may_fail, f"{name} ended before {what}: {status}"
            time.sleep(POLL_SECONDS)
        raise AssertionError(f"{name}: {what} did not come: {self.status(name)}")

    def _run(self, *arguments: str, stdin: str | None = None) -> str:
        return self.kubectl("-n", self.namespace, *arguments, stdin=stdin)

    def _json(self, *arguments: str) -> Manifest:
        document: Manifest = json.loads(self._run(*arguments, "-o", "json"))
        return document


def stage_of(status: Manifest, name: str) -> Manifest:
    """The status of one stage."""
    return next(stage for stage in status["stages"] if stage["name"] == name)


def trains_with_a_checkpoint(status: Manifest) -> bool:
    """Whether training runs and can go on from a checkpoint of its own."""
    training, checkpoint = status.get("training") or {}, status.get("checkpoint") or {}
    return status.get("phase") == "Training" and bool(checkpoint) and training.get("step", 0) > 0
