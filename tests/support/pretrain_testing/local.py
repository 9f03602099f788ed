"""Running `pretrainctl local`, with stages that a test scripts or (`real_jobs`) the real ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
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
class CommandRun:
    """A job file, its working directory, and `pretrainctl local` on them."""

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
    def environment(self) -> dict[str, str]:
        """Of the command."""
        return dict(os.environ)

    def command(self, *arguments: str) -> list[str]:
        """The words of the command."""
        command = [sys.executable, "-m", "pretrainctl", "local", str(self.file)]
        return [*command, "--workdir", str(self.workdir), *arguments]

    def start(self, *arguments: str, under: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start the command and leave it running; `under` is a program that runs it."""
        return subprocess.Popen(
            [*under, *self.command(*arguments)],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str, under: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        """Run the command to its end."""
        process = self.start(*arguments, under=under)
        output, errors = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    @property
    def saved(self) -> dict[str, Any]:
        """The job's file."""
        data: dict[str, Any] = yaml.safe_load(
            (self.workdir / "pretrainjob.yaml").read_text(encoding="utf-8")
        )
        return data


@dataclass(frozen=True)
class LocalJob(CommandRun):
    """A job and the scenario that its stages follow."""

    @property
    def scenario(self) -> Path:
        """Where the stages find what they are to do, and tell what they did."""
        return self.directory / "scenario"

    @property
    def environment(self) -> dict[str, str]:
        """With the scripted stages in place of the real ones."""
        return {**os.environ, "PYTHONPATH": f"{self.scenario}:{SUPPORT}"}

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
