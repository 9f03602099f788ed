"""Stages that do as a test tells them: `python -m pretrain_jobs` in tests of the local backend.

A scenario directory holds `scenario.json`, {"slices": N, "scripts": {"train": ["exit 71", "ok"]}}:
what each index does in the first, second, ... attempt of a stage, tries inside of an attempt
counted on; "ok" when nothing is said. Every run adds a line to `runs.jsonl`.

- ok: succeeds; the tokenizer names an artifact for each stage
- exit N: fails with the exit code of a cause, and reports that cause
- signal N: ends by a signal, without a report
- wait: starts a process in a session of its own, as torchrun does, and waits
- stubborn: the same, and nobody of them heeds SIGTERM
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from pretrain_api.reports import (
    EXIT_CODES,
    PROGRESS_FILE_ENV,
    STAGES,
    TERMINATION_LOG_ENV,
    Artifact,
    StageProgress,
    StageReport,
    StageResult,
    TrainingStatus,
)

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
    script: list[str] = plan.get("scripts", {}).get(stage, [])
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
        self._slices = int(plan.get("slices", 1))

    def do(self, verb: str, argument: str = "") -> None:
        self._progress()
        match verb:
            case "ok":
                self._report(result=self._result())
            case "exit":
                causes = {code: cause for cause, code in EXIT_CODES.items()}
                code = int(argument)
                self._report(cause=causes[code], message="as the test wanted")
                sys.exit(code)
            case "signal":
                os.kill(os.getpid(), int(argument))
            case "wait" | "stubborn":
                if verb == "stubborn":
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                subprocess.run([sys.executable, "-c", CHILD], start_new_session=True, check=True)

    def _result(self) -> StageResult:
        if self._stage != "tokenizer":
            return StageResult(step=STEPS if self._stage == "train" else None)
        root = self._config["storage"]["uri"]
        artifacts = [
            Artifact(stage=stage, fingerprint="f" * 16, uri=f"{root}/{stage}/{'f' * 16}")
            for stage in STAGES
        ]
        return StageResult(artifacts=artifacts, slices=self._slices)

    def _report(self, **fields: Any) -> None:
        report = StageReport(
            stage=self._stage,
            index=self._index,
            attempt=self._config["attempt"],
            **fields,
        )
        text = report.model_dump_json(by_alias=True)
        Path(os.environ[TERMINATION_LOG_ENV]).write_text(text, encoding="utf-8")

    def _progress(self) -> None:
        training = TrainingStatus(
            step=STEPS // 2, max_steps=STEPS, loss=4.25, tokens_per_second=21_300, eta_seconds=65
        )
        progress = StageProgress(
            stage=self._stage,
            index=self._index,
            attempt=self._config["attempt"],
            done=STEPS // 2,
            total=STEPS,
            unit="steps",
            training=training if self._stage == "train" else None,
        )
        text = progress.model_dump_json(by_alias=True)
        Path(os.environ[PROGRESS_FILE_ENV]).write_text(text, encoding="utf-8")
