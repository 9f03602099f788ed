"""The operator as the bed's chart runs it: which replica leads, and what may befall them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from bed.breakage import signal_pod
from bed.chart import NAMESPACE, RELEASE
from bed.cluster import Bed
from bed.errors import BedError

from pretrain_testing.cluster_jobs import Manifest
from pretrain_testing.completed_job import operator_requests

T = TypeVar("T")

PATIENCE_SECONDS = 300.0
"""Far more than a replica needs to start and to take the Lease, on a busy machine too."""

WRITES = ("create", "update", "patch", "delete")
COMMAND = "pretrain_operator"
"""A word in the command line of a replica, and of no other process of its pod."""

_POLL_SECONDS = 0.3
_POD_UID = "authentication.kubernetes.io/pod-uid"
"""In what the API server knows of a service account's user."""

_SELECTOR = "labelSelector=app.kubernetes.io%2Fcomponent%3Doperator"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods?{_SELECTOR}"
_LEASE = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{RELEASE}"


@dataclass(frozen=True)
class BedOperator:
    """Both replicas and the Lease between them."""

    bed: Bed

    def pods(self) -> list[Manifest]:
        """The replicas' pods, those that are about to go left out."""
        pods: list[Manifest] = self.bed.api.get(_PODS)["items"]
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def lease(self) -> Manifest:
        """The Lease's spec."""
        spec: Manifest = self.bed.api.get(_LEASE)["spec"]
        return spec

    def leader(self) -> Manifest | None:
        """The pod that holds the Lease, unless it is about to go."""
        holder = self.lease().get("holderIdentity", "").partition("_")[0]
        return next((pod for pod in self.pods() if pod["metadata"]["name"] == holder), None)

    def wait_for_leader(self, *, other_than: str = "") -> Manifest:
        """Wait until a pod leads; its name may be ruled out."""

        def look() -> Manifest | None:
            leader = self.leader()
            return leader if leader and leader["metadata"]["name"] != other_than else None

        return _wait_for("a leader", look)

    def wait_until_ready(self) -> None:
        """Wait until every replica is there and ready."""
        self.bed.kubectl(*self._in("rollout", "status", f"deployment/{RELEASE}", "--timeout=300s"))

    def delete(self, *pods: Manifest) -> None:
        """Delete some of its pods, without waiting."""
        names = [pod["metadata"]["name"] for pod in pods]
        self.bed.kubectl(*self._in("delete", "pods", *names, "--wait=false", "--ignore-not-found"))

    def kill(self, pod: Manifest) -> None:
        """Kill a replica, which can give up no Lease, and have its pod gone, without waiting."""
        signal_pod(pod["metadata"]["uid"], signal.SIGKILL, command=COMMAND)
        self.delete(pod)

    @contextmanager
    def frozen(self, pod: Manifest) -> Iterator[None]:
        """Have a replica not run for a while, without it noticing."""
        uid = pod["metadata"]["uid"]
        signal_pod(uid, signal.SIGSTOP, command=COMMAND)
        try:
            yield
        finally:
            signal_pod(uid, signal.SIGCONT, command=COMMAND)

    def writes_of(self, pod: Manifest, *, since: datetime) -> list[Manifest]:
        """Audit events of writes that one replica made from a moment on, its Lease left out."""
        uid = pod["metadata"]["uid"]
        return [
            request
            for request in operator_requests(self.bed)
            if request["verb"] in WRITES
            and uid in request["user"].get("extra", {}).get(_POD_UID, [])
            and request["objectRef"]["resource"] != "leases"
            and datetime.fromisoformat(request["requestReceivedTimestamp"]) > since
        ]

    def _in(self, *arguments: str) -> tuple[str, ...]:
        return (*arguments, f"--namespace={NAMESPACE}")


def let_pass(seconds: float) -> None:
    """Let time pass, where how long something lasts at least is what a test is about.

    None, where what was done meanwhile has taken all of it.
    """
    time.sleep(max(0.0, seconds))


def _wait_for(what: str, probe: Callable[[], T | None]) -> T:
    """The first true answer; the API server may be away for a while."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        with suppress(BedError, OSError):
            answer = probe()
            if answer:
                return answer
        time.sleep(_POLL_SECONDS)
    raise AssertionError(f"{what} did not come within {PATIENCE_SECONDS:g} s")
