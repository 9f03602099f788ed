"""Threads that look while a job trains: at processes and series, at events, and for ledgers.

A look that finds nobody there is left out; whether there were enough is judged in the end.
"""

from __future__ import annotations

import http.client
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import psutil
from bed.breakage import processes_of_pod
from bed.cluster import Bed
from bed.errors import BedError

from pretrain_testing.bed_operator import COMMAND, BedOperator
from pretrain_testing.cluster_jobs import STAGE_LABEL
from pretrain_testing.disturbed_job import ATTEMPT_LABEL, index_of
from pretrain_testing.pod_metrics import scrape_pod
from pretrain_testing.soak.children import told_by
from pretrain_testing.soak.readings import OperatorReading, RankReading, Seen, series_of

LOOK_SECONDS = 5.0
LEDGER_SECONDS = 0.5

SETTLED = "pretrain_recovery_seconds"
"""A family that rank 0 has once it has made a step."""

_TEMPORARY = "pods/{}/volumes/kubernetes.io~empty-dir/tmp"
"""Under the root of a kubelet: a pod's /tmp."""

_ABOUT_JOBS = "fieldSelector=involvedObject.kind%3DPretrainJob"
_NOBODY = (BedError, OSError, http.client.HTTPException, psutil.Error)

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Watch:
    """Looks at the bed's operator and at the one job of a namespace.

    `begun` is a moment of `time.monotonic`. Ledgers are kept open, so that they can be read when
    their pods are gone, and copied into a folder in the end.
    """

    bed: Bed
    namespace: str
    begun: float
    ledgers: Path
    seen: Seen = field(default_factory=Seen)
    kept: dict[str, BinaryIO] = field(default_factory=dict)

    @contextmanager
    def running(self) -> Iterator[Seen]:
        """Look until the block's end."""
        self.ledgers.mkdir(parents=True)
        ended = threading.Event()
        threads = [
            threading.Thread(target=_repeat, args=(look, pause, ended), daemon=True)
            for look, pause in ((self._look, LOOK_SECONDS), (self.keep_ledgers, LEDGER_SECONDS))
        ]
        for thread in threads:
            thread.start()
        try:
            yield self.seen
        finally:
            ended.set()
            for thread in threads:
                thread.join()
            self.copy_ledgers()

    def _look(self) -> None:
        for pod in BedOperator(self.bed).pods():
            with suppress(*_NOBODY):
                self._look_at_operator(pod)
        with suppress(*_NOBODY):
            self._look_at_rank_0()
        for event in self._items(f"events?{_ABOUT_JOBS}"):
            self.seen.events[event["metadata"]["uid"]] = told_by(event)

    def _look_at_operator(self, pod: Manifest) -> None:
        found = scrape_pod(pod)
        process = _process_of(pod)
        if found is None or process is None:
            return
        self.seen.operators.append(
            OperatorReading(
                at=time.monotonic() - self.begun,
                process=f"{pod['metadata']['name']}/{process.pid}",
                leads=found.value("pretrain_operator_is_leader") == 1,
                resident=process.memory_info().rss,
                files=process.num_fds(),
                threads=process.num_threads(),
                series=series_of(found),
            )
        )

    def _look_at_rank_0(self) -> None:
        pods = self._items(f"pods?labelSelector={STAGE_LABEL}%3Dtrain")
        firsts = [pod for pod in pods if index_of(pod) == 0 and pod["status"].get("podIP")]
        pod = max(firsts, key=_attempt_of, default=None)
        found = scrape_pod(pod) if pod else None
        series = series_of(found) if found else {}
        if pod is None or not series.get(SETTLED):
            return
        self.seen.ranks.append(
            RankReading(
                at=time.monotonic() - self.begun,
                attempt=_attempt_of(pod),
                files=sum(len(names) for _, _, names in os.walk(self._temporary(pod))),
                series=series,
            )
        )

    def _temporary(self, pod: Manifest) -> Path:
        node, uid = pod["spec"]["nodeName"], pod["metadata"]["uid"]
        return self.bed.profile.state / f"kubelet-{node}" / _TEMPORARY.format(uid)

    def keep_ledgers(self) -> None:
        """Open those that have come since."""
        pattern = f"kubelet-*/{_TEMPORARY.format('*')}/generation-*-rank-*.jsonl"
        for path in self.bed.profile.state.glob(pattern):
            if path.name not in self.kept:
                with suppress(FileNotFoundError):
                    self.kept[path.name] = path.open("rb")

    def copy_ledgers(self) -> None:
        """Copy all of them as they were left, those that are deleted too."""
        for name, stream in self.kept.items():
            with stream, (self.ledgers / name).open("wb") as copy:
                shutil.copyfileobj(stream, copy)

    def _items(self, what: str) -> list[Manifest]:
        items: list[Manifest] = self.bed.api.get(f"/api/v1/namespaces/{self.namespace}/{what}")[
            "items"
        ]
        return items


def _repeat(look: Callable[[], None], pause: float, ended: threading.Event) -> None:
    while not ended.wait(pause):
        with suppress(*_NOBODY):
            look()


def _process_of(pod: Manifest) -> psutil.Process | None:
    """The replica's own process."""
    found = processes_of_pod(pod["metadata"]["uid"])
    return next((process for process in found if COMMAND in process.cmdline()), None)


def _attempt_of(pod: Manifest) -> int:
    return int(pod["metadata"]["labels"][ATTEMPT_LABEL])
