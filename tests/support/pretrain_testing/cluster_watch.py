"""What a cluster told and when: every version of some objects, with the time it was seen at.

One `kubectl get --raw` with a watch per kind, read by a thread. Times are this process's, so those
of different kinds can be compared.
"""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from bed.binaries import program
from bed.cluster import Bed

Manifest = dict[str, Any]

OURS = "labelSelector=app.kubernetes.io/managed-by%3Dpretrain-operator"
PATHS = {
    "PretrainJob": "/apis/pretrain.dev/v1alpha1/pretrainjobs?watch=1",
    "Pod": f"/api/v1/pods?watch=1&{OURS}",
    "Event": "/api/v1/events?watch=1&fieldSelector=reason%3DFailedCreate",
}


@dataclass(frozen=True)
class Version:
    """An object as it was at a moment, which is in seconds of the monotonic clock."""

    seen_at: float
    kind: str
    object: Manifest


@dataclass
class Watched:
    """All versions so far, in the order in which they came."""

    versions: list[Version] = field(default_factory=list)

    def first(
        self, kind: str, holds: Callable[[Manifest], bool], *, after: float = 0.0
    ) -> Version | None:
        """The first version of a kind of which something holds."""
        seen = (v for v in list(self.versions) if v.kind == kind and v.seen_at >= after)
        return next((version for version in seen if holds(version.object)), None)


@contextmanager
def watching(bed: Bed, namespaces: Sequence[str]) -> Iterator[Watched]:
    """Watch the jobs, their pods and the refusals of pods in some namespaces."""
    watched = Watched()
    with ExitStack() as stack:
        for kind, path in PATHS.items():
            stack.enter_context(_reading(bed, kind, path, namespaces, watched))
        yield watched


@contextmanager
def _reading(
    bed: Bed, kind: str, path: str, namespaces: Sequence[str], watched: Watched
) -> Iterator[None]:
    command = (str(program("kubectl")), f"--kubeconfig={bed.kubeconfig}", "get", "--raw", path)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def read() -> None:
        for line in process.stdout or ():
            found = json.loads(line)["object"]
            if found.get("metadata", {}).get("namespace") in namespaces:
                watched.versions.append(Version(time.monotonic(), kind, found))

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        yield
    finally:
        process.terminate()
        process.wait()
        thread.join()
