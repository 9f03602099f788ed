"""A small training run as real processes: its configs, its launchers, and what they leave.

Only the launcher's command is used to run; `training_ranks` starts ranks without it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from pretrain_api.reports import PROGRESS_FILE_ENV, TERMINATION_LOG_ENV, StageReport
from pretrain_api.spec.lifecycle import CheckpointSpec
from pretrain_api.spec.model import ModelSpec
from pretrain_api.spec.objective import ClmSpec, MlmSpec, ObjectiveSpec
from pretrain_api.spec.preprocess import PackingSpec, PreprocessSpec
from pretrain_api.spec.storage import StorageSpec
from pretrain_api.spec.training import TrainingSpec
from pretrain_api.spec.workers import WorkersSpec
from pretrain_api.stages import JobRef, RendezvousConfig, TrainStageConfig
from pretrain_api.timesheet import EarlierAttempts
from pretrain_jobs.checkpoint.manifest import decode_abandonment

from pretrain_testing.ledgers import Ledger, read_ledger
from pretrain_testing.made_datasets import FINGERPRINT, make_dataset

TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
}
SIZES: dict[str, dict[str, int]] = {
    "bert": TINY,
    "gpt2": {"n_embd": 32, "n_layer": 1, "n_head": 2},
}
RUN_SECONDS = 300.0


@dataclass(frozen=True)
class Ending:
    """How a launcher, or a rank without one, ended."""

    code: int
    report: StageReport | None
    output: str

    @property
    def message(self) -> str:
        return self.report.message if self.report else ""


@dataclass(frozen=True)
class Bed:
    """One job in a directory: config fields that tests vary, and its runs.

    Its storage is a directory, or an S3 server's, whose files then lie in `files`.
    """

    root: Path
    name: str = "run"
    architecture: Literal["bert", "gpt2"] = "bert"
    replicas: int = 1
    processes: int = 2
    training: dict[str, Any] = field(default_factory=dict)
    checkpoint: dict[str, Any] = field(default_factory=dict)
    model: dict[str, Any] = field(default_factory=dict)
    rendezvous_seconds: int = 120
    hang_seconds: int = 1800
    environment: dict[str, str] = field(default_factory=dict)
    storage: StorageSpec | None = None
    files: Path | None = None
    earlier: EarlierAttempts | None = None

    def variant(self, name: str, **changes: Any) -> Bed:
        """The same with other fields, in a place of its own under the same dataset."""
        return replace(self, name=name, **changes)

    @property
    def directory(self) -> Path:
        return self.root / self.name

    @property
    def stored(self) -> Path:
        return self.files or self.directory / "storage"

    @property
    def model_directory(self) -> Path:
        return self.stored / "model"

    @property
    def checkpoints(self) -> Path:
        return self.stored / "checkpoints"

    @property
    def ledger(self) -> Path:
        return self.directory / "ledger"

    @property
    def weights(self) -> bytes:
        return (self.model_directory / "model.safetensors").read_bytes()

    def document(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.model_directory / name).read_bytes())
        return content

    def log_lines(self) -> list[dict[str, Any]]:
        text = (self.checkpoints / "logs" / "log.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def commits(self) -> list[Path]:
        """The COMMIT files, the oldest step first."""
        found = sorted(self.checkpoints.glob("step-*/*/COMMIT"))
        return [path for path in found if decode_abandonment(path.read_bytes()) is None]

    def committed_steps(self) -> list[int]:
        return [int(path.parents[1].name.removeprefix("step-")) for path in self.commits()]

    def reached(self, step: int) -> bool:
        """Whether some rank has finished a step."""
        return any(number >= step for number, _ in self.ledger_entries())

    def ledger_entries(self) -> Ledger:
        """Sample ids by step and rank; a step that ran twice must have the same ones."""
        return read_ledger(self.ledger)

    def config(self, *, attempt: int = 0) -> TrainStageConfig:
        if not (self.root / "dataset").exists():
            make_dataset(self.root / "dataset")
        masked = self.architecture == "bert"
        storage = self.storage or StorageSpec(uri=f"file://{self.stored}")
        return TrainStageConfig(
            job=JobRef(namespace="default", name=self.name, uid="5a" * 16),
            attempt=attempt,
            storage=storage,
            dataset_uri=f"file://{self.root}/dataset",
            dataset_fingerprint=FINGERPRINT,
            model_uri=f"{storage.uri}/model",
            model_fingerprint="fedcba9876543210",
            checkpoint_uri=f"{storage.uri}/checkpoints",
            model=ModelSpec(
                architecture=self.architecture, config=SIZES[self.architecture] | self.model
            ),
            objective=ObjectiveSpec(mlm=MlmSpec()) if masked else ObjectiveSpec(clm=ClmSpec()),
            preprocess=PreprocessSpec(
                sequence_length=32,
                packing=PackingSpec(strategy="fullSentences" if masked else "blocks"),
            ),
            training=TrainingSpec.model_validate(DEFAULT_TRAINING | self.training),
            workers=WorkersSpec(
                replicas=self.replicas, processes_per_worker=self.processes, device="cpu"
            ),
            checkpoint=CheckpointSpec.model_validate({"everySteps": 4} | self.checkpoint),
            rendezvous=RendezvousConfig(
                host="rank0.example.svc" if self.replicas > 1 else "127.0.0.1",
                port=free_port(),
                run_id=f"{self.name}-{attempt}",
                timeout_seconds=self.rendezvous_seconds,
            ),
            hang_timeout_seconds=self.hang_seconds,
            earlier=self.earlier,
        )

    def write_config(self, attempt: int) -> Path:
        """Write an attempt's config, in a directory of the attempt's own."""
        home = self.directory / f"attempt-{attempt}"
        home.mkdir(parents=True, exist_ok=True)
        self.ledger.mkdir(exist_ok=True)
        path = home / "config.json"
        path.write_text(self.config(attempt=attempt).model_dump_json(by_alias=True))
        return path

    def start(self, *, attempt: int = 0, **environment: str) -> Attempt:
        """Start every node's launcher."""
        path = self.write_config(attempt)
        extra = self.environment | environment
        return Attempt([_launch(path, index, extra, self) for index in range(self.replicas)])

    def run(self, *, attempt: int = 0, **environment: str) -> Ending:
        """Run an attempt to its end; the first node's ending."""
        return self.start(attempt=attempt, **environment).wait()[0]


def flip_a_byte(path: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 4
    path.write_bytes(data)


WALL_FIGURES = {"tokensPerSecond", "stepSeconds", "mfu"}


def without_wall_figures(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Lines of a log without what the clock decides, and without the marks of resumes."""
    return [
        {name: value for name, value in line.items() if name not in WALL_FIGURES}
        for line in lines
        if "resumed" not in line
    ]


def assert_same_training(one: Bed, other: Bed) -> None:
    """Both runs came to the same weights to the last bit, over the same samples and figures."""
    assert one.weights == other.weights
    assert one.document("training.json") == other.document("training.json")
    assert one.document("eval_results.json") == other.document("eval_results.json")
    assert one.ledger_entries() == other.ledger_entries()
    assert without_wall_figures(one.log_lines()) == without_wall_figures(other.log_lines())


DEFAULT_TRAINING: dict[str, Any] = {
    "globalBatchSize": 8,
    "microBatchSize": 2,
    "maxSteps": 12,
    "precision": "fp32",
    "optimizer": {"learningRate": 3e-3},
    "schedule": {"type": "linear", "warmupSteps": 4},
    "evaluation": {"everySteps": 6, "maxSamples": 8},
    "logging": {"intervalSteps": 3, "tensorboard": False},
}


@dataclass
class Launched:
    """One node's launcher and the files that it was given."""

    process: subprocess.Popen[bytes]
    home: Path

    def ending(self) -> Ending:
        code = self.process.wait(RUN_SECONDS)
        path = self.home / "termination-log"
        report = StageReport.model_validate_json(path.read_bytes()) if path.exists() else None
        return Ending(code, report, (self.home / "output").read_text())


@dataclass
class Attempt:
    """The launchers of one attempt."""

    nodes: list[Launched]

    @property
    def pid(self) -> int:
        return self.nodes[0].process.pid

    def wait(self) -> list[Ending]:
        return [node.ending() for node in self.nodes]


def free_port() -> int:
    """A port that nobody listens on, for now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _launch(config: Path, index: int, extra: dict[str, str], bed: Bed) -> Launched:
    own = config.parent / f"node-{index}"
    (own / "tmp").mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "",
        "TMPDIR": str(own / "tmp"),
        "HOME": str(own / "tmp"),
        "JOB_COMPLETION_INDEX": str(index),
        "PRETRAIN_HOST_ALIASES": json.dumps({"rank0.example.svc": "127.0.0.1"}),
        "PRETRAIN_LEDGER_DIR": str(bed.ledger),
        TERMINATION_LOG_ENV: str(own / "termination-log"),
        PROGRESS_FILE_ENV: str(own / "progress.json"),
        **extra,
    }
    with (own / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "pretrain_jobs", "train", "--config", str(config)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    return Launched(process, own)
