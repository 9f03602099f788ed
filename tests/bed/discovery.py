"""Tells Prometheus which pods to scrape: Debian's build of it cannot ask Kubernetes itself.

Run as `python -m bed.discovery STATE`; serves Prometheus's HTTP service discovery
(https://prometheus.io/docs/prometheus/latest/http_sd/).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bed.api_client import ApiClient
from bed.errors import BedError
from bed.health import answers
from bed.paths import ROOT
from bed.processes import Part
from bed.profile import LOOPBACK, Profile, profile

METRICS_PORT = "metrics"
"""Name of the container ports that are scraped."""

URL = f"http://{LOOPBACK}:9099/targets"
_JOB_LABEL = "app.kubernetes.io/name"


def discovery(bed: Profile) -> Part:
    """The process that answers Prometheus."""
    return Part(
        "discovery",
        (sys.executable, "-m", "bed.discovery", str(bed.state)),
        healthy=answers(URL),
        environment={"PYTHONPATH": str(ROOT / "tests")},
    )


def targets_of(pods: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The running pods' ports of that name, labelled as Prometheus Operator's PodMonitors do."""
    return [
        {"targets": [f"{pod['status']['podIP']}:{port}"], "labels": _labels(pod)}
        for pod in pods
        if pod["status"].get("phase") == "Running" and pod["status"].get("podIP")
        for port in _metrics_ports(pod)
    ]


def _metrics_ports(pod: dict[str, Any]) -> list[int]:
    containers = pod["spec"]["containers"]
    ports = [port for container in containers for port in container.get("ports", [])]
    return [port["containerPort"] for port in ports if port.get("name") == METRICS_PORT]


def _labels(pod: dict[str, Any]) -> dict[str, str]:
    metadata = pod["metadata"]
    return {
        "job": metadata.get("labels", {}).get(_JOB_LABEL, "pods"),
        "namespace": metadata["namespace"],
        "node": pod["spec"]["nodeName"],
        "pod": metadata["name"],
    }


class _Handler(BaseHTTPRequestHandler):
    """Answers every GET with the targets of this moment."""

    client: ApiClient

    def do_GET(self) -> None:
        try:
            pods = self.client.get("/api/v1/pods")["items"]
        except (BedError, OSError) as error:
            self.send_error(HTTPStatus.SERVICE_UNAVAILABLE, str(error))
            return
        content = json.dumps(targets_of(pods)).encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing: one line every few seconds tells nobody anything."""


def _main(state: Path) -> None:
    _Handler.client = ApiClient(profile("full", state))
    host, port = URL.removeprefix("http://").split("/")[0].split(":")
    ThreadingHTTPServer((host, int(port)), _Handler).serve_forever()


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
