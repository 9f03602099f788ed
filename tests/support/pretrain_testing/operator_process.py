"""The operator as a process of its own, against a bed's API server."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from pretrain_testing.processes import wait_for

POLL_SECONDS = 1
RESYNC_SECONDS = 2
LOOK_SECONDS = 0.1
"""How often it is asked what it does; every answer costs it some milliseconds."""

_BACKGROUND = ("leases", "discovery")


@dataclass
class OperatorProcess:
    """One replica; it serves the namespace that it is started for, and keeps its Lease there."""

    kubeconfig: Path
    namespace: str
    log: Path
    name: str = "operator-0"
    environment: Mapping[str, str] = field(default_factory=dict)
    port: int = field(init=False)
    process: subprocess.Popen[bytes] = field(init=False)

    def start(self) -> OperatorProcess:
        """Start it, without waiting for anything."""
        self.port = _free_port()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pretrain_operator"], env=self._environment(), stderr=log
            )
        return self

    def wait_until_ready(self) -> OperatorProcess:
        """Wait for `/readyz`."""
        self._wait_for("readiness", lambda: self._alive() and self.answer("/readyz") == 200)
        return self

    def wait_until_leading(self) -> OperatorProcess:
        """Wait until it holds the Lease."""
        leads = "pretrain_operator_is_leader"
        self._wait_for("leadership", lambda: self._alive() and bool(self.metric(leads)))
        return self

    def wait_for_resyncs(self, count: int = 3) -> None:
        """Wait until it has come round several times with nothing to do."""
        name = "pretrain_operator_last_reconcile_timestamp_seconds"
        for _ in range(count):
            self._wait_for("a resync", partial(self._is_later, name, self.metric(name)))

    def wait_until_forgotten(self, job: str) -> None:
        """Wait until it knows no job of a name."""
        series = partial(self.metric, "pretrain_job_info", job=job)
        self._wait_for(f"the end of {job}", lambda: self._alive() and not series())

    def answer(self, path: str) -> int:
        """The status code of one of its paths; 0 without an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all series of a name that have these labels."""
        return sum(
            sample.value
            for sample in self.samples()
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    def requests(self) -> float:
        """Requests to the API server so far, but for watches and the Lease."""
        return sum(
            sample.value
            for sample in self.samples()
            if sample.name == "pretrain_operator_api_requests_total"
            and sample.labels["verb"] != "watch"
            and sample.labels["resource"] not in _BACKGROUND
        )

    def samples(self) -> list[Sample]:
        """All samples of a scrape; none while it does not answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        except OSError:
            return []
        finally:
            connection.close()
        return [s for family in text_string_to_metric_families(text) for s in family.samples]

    def resident_bytes(self) -> int:
        """Its memory."""
        used: int = psutil.Process(self.process.pid).memory_info().rss
        return used

    def freeze(self) -> None:
        """Stop it from running, without it noticing."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def terminate(self) -> int:
        """Ask it to end, as a kubelet does; its exit code."""
        self.process.terminate()
        return self.process.wait(30)

    def kill(self) -> None:
        """End it on the spot."""
        self.process.kill()
        self.process.wait(30)

    def logged(self) -> str:
        """All that it has logged."""
        return self.log.read_text(encoding="utf-8")

    def _wait_for(self, what: str, probe: Callable[[], bool]) -> None:
        wait_for(f"{what} of the operator", probe, every=LOOK_SECONDS)

    def _is_later(self, name: str, than: float) -> bool:
        return self._alive() and self.metric(name) > than

    def _alive(self) -> bool:
        assert self.process.poll() is None, f"the operator has ended:\n{self.logged()[-4000:]}"
        return True

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PRETRAIN_KUBECONFIG": str(self.kubeconfig),
            "PRETRAIN_OPERATOR_NAMESPACES": self.namespace,
            "PRETRAIN_OPERATOR_POD_NAMESPACE": self.namespace,
            "PRETRAIN_OPERATOR_POD_NAME": self.name,
            "PRETRAIN_OPERATOR_HTTP_PORT": str(self.port),
            "PRETRAIN_OPERATOR_POLL_SECONDS": str(POLL_SECONDS),
            "PRETRAIN_OPERATOR_RESYNC_SECONDS": str(RESYNC_SECONDS),
            "PRETRAIN_OPERATOR_LOG_FORMAT": "plain",
            **self.environment,
        }


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port
