"""Stages that do as a test tells them: `python -m pretrain_jobs` in tests of the local backend.

A scenario directory holds `scenario.json`, whose "scripts" are {"train": ["exit 71", "ok"], ...}:
what each index does in the first, second, ... attempt of a stage, tries inside of an attempt
counted on; "ok" when nothing is said. Every run adds a line to `runs.jsonl`.

- ok: succeeds; the tokenizer names an artifact for each stage
- exit N: fails with the exit code of a cause, and reports that cause
- signal N: ends by a signal, without a report
- wait: starts a process in a session of its own, as torchrun does, and waits
- stubborn: the same, and nobody of them heeds SIGTERM

Standard library only, as it starts often; `pretrain_testing.local` writes what it has to know of
the API into the scenario.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
STEPS = 100


def main(scenario: Path) -> None:
    """Run one stage as the scenario says."""
    stage = sys.argv[1]
    if stage == "pull":
        _pull(Path(sys.argv[3]))
        return
    config = json.loads(Path(sys.argv[3]).read_text(encoding="utf-8"))
    index = int(os.environ["JOB_COMPLETION_INDEX"])
    plan = json.loads((scenario / "scenario.json").read_text(encoding="utf-8"))
    action = _next_action(scenario, plan, stage, index, config["attempt"])
    _record(scenario, stage=stage, index=index, config=config, action=action)
    _Run(stage, index, config, plan).do(*action.split())


def _pull(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text("{}", encoding="utf-8")


def _next_action(scenario: Path, plan: dict[str, Any], stage: str, index: int, attempt: int) -> str:
    tries = [(run["stage"], run["index"], run["attempt"]) for run in read_runs(scenario)]
    number = attempt + tries.count((stage, index, attempt))
    script: list[str] = plan["scripts"].get(stage, [])
    return script[number] if number < len(script) else "ok"


def read_runs(scenario: Path) -> list[dict[str, Any]]:
    """All runs so far: stage, index, attempt, action, process id, environment, config."""
    file = scenario / "runs.jsonl"
    if not file.exists():
        return []
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def _record(scenario: Path, *, stage: str, index: int, config: dict[str, Any], action: str) -> None:
    run = {
        "stage": stage,
        "index": index,
        "attempt": config["attempt"],
        "action": action,
        "pid": os.getpid(),
        "env": dict(os.environ),
        "config": config,
    }
    with (scenario / "runs.jsonl").open("a", encoding="utf-8") as stream:
        stream.write(json.dumps(run) + "\n")


class _Run:
    """One run of one stage."""

    def __init__(
        self, stage: str, index: int, config: dict[str, Any], plan: dict[str, Any]
    ) -> None:
        self._stage = stage
        self._index = index
        self._config = config
        self._plan = plan

    def do(self, verb: str, argument: str = "") -> None:
        self._progress()
        match verb:
            case "ok":
                self._report(result=self._result())
            case "exit":
                self._report(cause=self._plan["causes"][argument], message="as the test wanted")
                sys.exit(int(argument))
            case "signal":
                os.kill(os.getpid(), int(argument))
            case "wait" | "stubborn":
                if verb == "stubborn":
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                subprocess.run([sys.executable, "-c", CHILD], start_new_session=True, check=True)

    def _result(self) -> dict[str, Any]:
        if self._stage != "tokenizer":
            return {"step": STEPS if self._stage == "train" else None}
        root = self._config["storage"]["uri"]
        artifacts = [
            {"stage": stage, "fingerprint": "f" * 16, "uri": f"{root}/{stage}/{'f' * 16}"}
            for stage in self._plan["stages"]
        ]
        return {"artifacts": artifacts, "slices": self._plan["slices"]}

    def _report(self, **fields: Any) -> None:
        self._write("PRETRAIN_TERMINATION_LOG", fields)

    def _progress(self) -> None:
        training = {"step": STEPS // 2, "maxSteps": STEPS, "loss": 4.25, "etaSeconds": 65}
        progress = {"done": STEPS // 2, "total": STEPS, "unit": "steps"}
        is_training = self._stage == "train"
        self._write(
            "PRETRAIN_PROGRESS_FILE", {**progress, "training": training if is_training else None}
        )

    def _write(self, variable: str, fields: dict[str, Any]) -> None:
        place = {
            "stage": self._stage,
            "index": self._index,
            "attempt": self._config["attempt"],
        }
        Path(os.environ[variable]).write_text(json.dumps({**place, **fields}), encoding="utf-8")
