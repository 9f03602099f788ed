"""The chart rendered by a real helm, for tests; needs no cluster."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).resolve().parents[3] / "charts/pretrain-operator"
RELEASE = "pretrain-operator"
NAMESPACE = "pretrain-system"

MONITORS = ("monitoring.coreos.com/v1/ServiceMonitor", "monitoring.coreos.com/v1/PodMonitor")
"""What a cluster with the Prometheus Operator serves, as Helm names it."""

Manifest = dict[str, Any]


@dataclass
class Chart:
    """The chart with one helm binary."""

    helm: str
    _done: dict[str, subprocess.CompletedProcess[str]] = field(default_factory=dict, repr=False)
    """What helm said to a command and values that came before."""

    def render(
        self,
        values: Mapping[str, Any] | None = None,
        *,
        release: str = RELEASE,
        namespace: str = NAMESPACE,
        served: Sequence[str] = (),
    ) -> list[Manifest]:
        """All manifests, hooks too, in Helm's order of installation; the caller may change them."""
        done = self._template(values or {}, release=release, namespace=namespace, served=served)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.load_all(done.stdout, yaml.CSafeLoader) if document]

    def refusal(self, values: Mapping[str, Any], *, served: Sequence[str] = ()) -> str:
        """What helm says on stderr when it refuses the values."""
        done = self._template(values, release=RELEASE, namespace=NAMESPACE, served=served)
        assert done.returncode != 0, f"helm accepted {values}"
        return done.stderr

    def notes(self, values: Mapping[str, Any] | None = None) -> str:
        """The NOTES that an installation shows, from a dry run on this side."""
        command = [self.helm, "install", RELEASE, str(CHART), "--namespace", NAMESPACE]
        done = self._run([*command, "--dry-run=client", "--hide-secret"], values or {})
        assert done.returncode == 0, done.stderr
        return done.stdout.partition("\nNOTES:\n")[2]

    def _template(
        self,
        values: Mapping[str, Any],
        *,
        release: str,
        namespace: str,
        served: Sequence[str],
    ) -> subprocess.CompletedProcess[str]:
        command = [self.helm, "template", release, str(CHART), "--namespace", namespace]
        versions = [word for api in served for word in ("--api-versions", api)]
        return self._run([*command, *versions], values)

    def _run(
        self, command: list[str], values: Mapping[str, Any]
    ) -> subprocess.CompletedProcess[str]:
        text = json.dumps(values, sort_keys=True)
        key = " ".join([*command, text])
        if key not in self._done:
            with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
                file.write(text)
                file.flush()
                self._done[key] = subprocess.run(
                    [*command, "--values", file.name], capture_output=True, text=True, check=False
                )
        return self._done[key]


def of_kind(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    """Those of a kind, in their order."""
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def only(manifests: Sequence[Manifest], kind: str) -> Manifest:
    """The one of a kind."""
    (found,) = of_kind(manifests, kind)
    return found
