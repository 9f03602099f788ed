"""Running `pretrainctl local` with stages that a test scripts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pretrain_api.reports import EXIT_CODES, STAGES

from pretrain_testing.processes import wait_for
from pretrain_testing.scripted_stages import read_runs

SUPPORT = Path(__file__).parents[1]
PACKAGE = """\
from pathlib import Path

from pretrain_testing.scripted_stages import main

main(Path(__file__).parents[1])
"""
JOB: dict[str, Any] = {
    "apiVersion": "pretrain.dev/v1alpha1",
    "kind": "PretrainJob",
    "metadata": {"name": "demo"},
    "spec": {
        "corpus": {"sources": [{"uri": "corpus/a.txt"}]},
        "model": {"architecture": "bert"},
        "failurePolicy": {"backoff": {"initialSeconds": 0, "maximumSeconds": 0}},
    },
}


@dataclass(frozen=True)
class LocalJob:
    """A job file, its working directory and the scenario that its stages follow."""

    directory: Path

    @property
    def file(self) -> Path:
        """The manifest."""
        return self.directory / "job.yaml"

    @property
    def workdir(self) -> Path:
        """What is given to --workdir."""
        return self.directory / "run"

    @property
    def scenario(self) -> Path:
        """Where the stages find what they are to do, and tell what they did."""
        return self.directory / "scenario"

    def write(
        self, *, slices: int = 1, scripts: dict[str, list[str]] | None = None, **spec: Any
    ) -> None:
        """Write the manifest and the scenario."""
        manifest = {**JOB, "spec": {**JOB["spec"], **spec}}
        self.file.write_text(yaml.safe_dump(manifest), encoding="utf-8")
        package = self.scenario / "pretrain_jobs"
        package.mkdir(parents=True, exist_ok=True)
        (package / "__init__.py").touch()
        (package / "__main__.py").write_text(PACKAGE, encoding="utf-8")
        scenario = {
            "slices": slices,
            "scripts": scripts or {},
            "stages": STAGES,
            "causes": {code: cause for cause, code in EXIT_CODES.items()},
        }
        (self.scenario / "scenario.json").write_text(json.dumps(scenario), encoding="utf-8")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start `pretrainctl local` and leave it running."""
        command = [sys.executable, "-m", "pretrainctl", "local", str(self.file)]
        return subprocess.Popen(
            [*command, "--workdir", str(self.workdir), *arguments],
            env={**os.environ, "PYTHONPATH": f"{self.scenario}:{SUPPORT}"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run `pretrainctl local` to its end."""
        process = self.start(*arguments)
        output, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def start_until(self, action: str, *arguments: str) -> subprocess.Popen[str]:
        """Start it and wait until a stage began an action, such as `wait`."""
        before = len(self.runs)
        process = self.start(*arguments)
        wait_for(
            f"a stage's {action!r}",
            lambda: any(run["action"] == action for run in self.runs[before:]),
        )
        return process

    @property
    def runs(self) -> list[dict[str, Any]]:
        """Every stage process that was started."""
        return read_runs(self.scenario)

    @property
    def stages_run(self) -> list[str]:
        """Names of the stages in the order in which they were started."""
        return [run["stage"] for run in self.runs]

    @property
    def saved(self) -> dict[str, Any]:
        """The job's file."""
        data: dict[str, Any] = yaml.safe_load(
            (self.workdir / "pretrainjob.yaml").read_text(encoding="utf-8")
        )
        return data
