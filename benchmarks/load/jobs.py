"""The load: PretrainJobs created at once, followed until all of them are Complete."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bed.cluster import Bed
from bed.errors import BedError
from bed.kwok import NODE_LABEL
from bed.namespaces import STORAGE_SECRET, create_namespace
from bed.profile import Profile

NAMESPACE = "load"
WORKERS = 2
"""Pods of a job's gang."""

SILENCE_SECONDS = 120.0
"""Without any job changing for so long, the load counts as stuck."""

_CREATED_AT_ONCE = 8
_WATCH_SECONDS = 3600
_PATH = f"/apis/pretrain.dev/v1alpha1/namespaces/{NAMESPACE}/pretrainjobs"
_SPEC: dict[str, Any] = {
    "storage": {"uri": "s3://pretrain/load", "credentialsSecret": STORAGE_SECRET},
    "corpus": {"sources": [{"uri": "corpora/wiki/"}]},
    "model": {"architecture": "bert"},
    "workers": {"replicas": WORKERS},
    "evaluation": {"tasks": [{"name": "sentiment", "data": {"uri": "tasks/sentiment.jsonl"}}]},
    "scheduling": {"tolerations": [{"key": NODE_LABEL, "operator": "Exists"}]},
}


class LoadFailedError(RuntimeError):
    """Not all jobs came to their end; says which ones, and what their status tells."""


@dataclass(frozen=True)
class Load:
    """A number of equal jobs in one namespace of a cluster."""

    bed: Bed
    jobs: int

    def prepare(self) -> None:
        """Make the namespace."""
        create_namespace(self.bed.api, NAMESPACE)

    def create(self) -> float:
        """Create all jobs as fast as the API server takes them; the seconds that took."""
        started = time.monotonic()
        with ThreadPoolExecutor(max_workers=_CREATED_AT_ONCE) as pool:
            list(pool.map(self._create, range(self.jobs)))
        return time.monotonic() - started

    def follow(self) -> Followed:
        """Begin to follow the jobs, those that are there and those to come."""
        followed = Followed(self.jobs)
        threading.Thread(target=self._keep_watching, args=(followed,), daemon=True).start()
        return followed

    def pods_created(self) -> dict[str, tuple[int, float]]:
        """How many pods each stage had, and when the last of them was made (seconds, epoch)."""
        found: dict[str, tuple[int, float]] = {}
        for pod in self._list(f"/api/v1/namespaces/{NAMESPACE}/pods"):
            metadata = pod["metadata"]
            stage = metadata["labels"]["pretrain.dev/stage"]
            count, last = found.get(stage, (0, 0.0))
            created = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
            found[stage] = count + 1, max(last, created)
        return found

    def largest_status(self) -> int:
        """Bytes of the largest status, as JSON."""
        stored = (job.get("status") or {} for job in self._list(_PATH))
        return max(len(json.dumps(status)) for status in stored)

    def _create(self, number: int) -> None:
        job = {
            "apiVersion": "pretrain.dev/v1alpha1",
            "kind": "PretrainJob",
            "metadata": {"name": f"job-{number}"},
            "spec": _SPEC,
        }
        self.bed.api.request("POST", _PATH, job)

    def _keep_watching(self, followed: Followed) -> None:
        """Note changes until the cluster goes; a busy API server ends a watch that is slow."""
        with suppress(OSError, BedError):
            while True:
                listed = self.bed.api.get(_PATH)
                for job in listed["items"]:
                    followed.note(job)
                _watch(self.bed.profile, listed["metadata"]["resourceVersion"], followed)

    def _list(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self.bed.api.get(path)["items"]
        return items


@dataclass
class Followed:
    """What was last heard of each job."""

    jobs: int
    statuses: dict[str, dict[str, Any]] = field(default_factory=dict)
    heard_at: float = field(default_factory=time.monotonic)

    def note(self, job: dict[str, Any]) -> None:
        """Take over a job that was listed or has changed."""
        name, status = job["metadata"]["name"], job.get("status") or {}
        if self.statuses.get(name) != status:
            self.statuses[name] = status
            self.heard_at = time.monotonic()

    def all_complete(self) -> bool:
        """Whether all are; LoadFailedError when one has failed, or nothing happens any more."""
        phases = Counter(str(s.get("phase")) for s in list(self.statuses.values()))
        if phases["Failed"]:
            raise LoadFailedError(f"{phases['Failed']} jobs have failed: {self._sentences()}")
        if time.monotonic() - self.heard_at > SILENCE_SECONDS:
            raise LoadFailedError(
                f"of {self.jobs} jobs nothing was heard for {SILENCE_SECONDS:g} s; they are "
                f"{dict(phases)}: {self._sentences()}"
            )
        return phases["Complete"] == self.jobs

    def _sentences(self) -> str:
        """What most of those that are not complete say of themselves."""
        open_ones = (s for s in list(self.statuses.values()) if s.get("phase") != "Complete")
        counted = Counter(str(s.get("blockedBy") or "nothing") for s in open_ones)
        return "; ".join(f"{count} say: {text}" for text, count in counted.most_common(3))


def _watch(profile: Profile, version: str, followed: Followed) -> None:
    """Note changes until the watch ends, for whatever reason."""
    context = ssl.create_default_context(cafile=profile.pki / "ca.crt")
    context.load_cert_chain(profile.pki / "admin.crt", profile.pki / "admin.key")
    connection = http.client.HTTPSConnection(profile.address, profile.api_port, context=context)
    path = f"{_PATH}?watch=true&timeoutSeconds={_WATCH_SECONDS}&resourceVersion={version}"
    with closing(connection), suppress(OSError, http.client.HTTPException, ValueError):
        connection.request("GET", path)
        for line in connection.getresponse():
            event = json.loads(line)
            if event["type"] != "ERROR":
                followed.note(event["object"])
