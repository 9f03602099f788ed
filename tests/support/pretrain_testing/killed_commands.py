"""A job by the command, killed from outside at its moments, and compared with one left alone.

Used by the tests with a small job and by `make kill-demo` with the quickstart. The promise under
test: the same command finishes the job, the exported weights are byte-identical to those of a
run left alone, and no sample is repeated or skipped.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import yaml

from pretrain_testing.kills import OUTSIDE, Done, Kill, Victim, seeded_kills, table
from pretrain_testing.ledgers import NewestStep, begun_after, read_ledger
from pretrain_testing.small_jobs import small_data, training_job

STEPS = 60
"""Of the small job."""

POLL_SECONDS = 0.02
RUN_LIMIT = 12
"""Starts of the command that may be needed after the last kill; one is enough if all is well."""


@dataclass(frozen=True)
class Workdir:
    """Where one run of the job keeps its files."""

    path: Path

    @property
    def ledger(self) -> Path:
        return self.path.parent / f"{self.path.name}-ledger"

    @property
    def storage(self) -> Path:
        return self.path / "storage"

    @property
    def weights(self) -> Path:
        return self.path / "export" / "model.safetensors"


def write_training_job(path: Path, *, steps: int = STEPS) -> None:
    """The small quickstart on two ranks, with nothing to evaluate."""
    job = training_job(name="chaos", steps=steps)
    job["spec"]["workers"] = {"replicas": 1, "processesPerWorker": 2}
    path.write_text(yaml.safe_dump(job, allow_unicode=True))
    with_quick_restarts(path, path)


def with_small_data(workdir: Workdir) -> Workdir:
    """A working directory whose storage holds the small quickstart's data."""
    for name, content in small_data():
        path = workdir.storage / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return workdir


def with_prepared_text(workdir: Workdir, other: Workdir) -> Workdir:
    """A working directory whose storage holds what another job's did before its training."""
    trained = shutil.ignore_patterns("checkpoints", "models", "exports")
    shutil.copytree(other.storage, workdir.storage, ignore=trained)
    return workdir


def with_quick_restarts(manifest: Path, target: Path) -> Path:
    """Copy the manifest with next to no back-off, and room for kills without progress."""
    job = yaml.safe_load(manifest.read_text())
    job["spec"]["failurePolicy"] = {
        "backoff": {"initialSeconds": 0, "maximumSeconds": 1},
        "noProgressRestarts": 20,
    }
    target.write_text(yaml.safe_dump(job, allow_unicode=True))
    return target


def run_undisturbed(manifest: Path, workdir: Workdir) -> None:
    """Run the job to its end."""
    with _started(manifest, workdir) as process:
        output = process.communicate()[0]
    assert process.returncode == 0, f"the undisturbed run failed:\n{output}"


def run_killed(manifest: Path, workdir: Workdir, kills: Sequence[Kill]) -> list[Done]:
    """Run the job and carry out the kills in order."""
    pending = list(kills)
    newest = NewestStep(workdir.ledger)
    done: list[tuple[Kill, set[int]]] = []
    for _ in range(len(kills) + RUN_LIMIT):
        with _started(manifest, workdir) as process:
            while pending and _wait_for(pending[0], process, workdir, newest):
                kill = pending.pop(0)
                _carry_out(kill, process)
                done.append((kill, set(begun_after(workdir.ledger))))
                if kill.victim in OUTSIDE:
                    break
            output = process.communicate()[0]
        if process.returncode == 0:
            assert not pending, f"the job ended before these moments came: {pending}"
            return [Done(kill, _resumed(workdir.ledger, known)) for kill, known in done]
        assert process.returncode == -signal.SIGKILL, f"the command gave up:\n{output}"
    raise AssertionError(f"the job did not end; killed: {[str(kill) for kill, _ in done]}")


def compare(killed: Workdir, undisturbed: Workdir) -> None:
    """Assert that both runs exported the same bytes and trained on the same samples."""
    assert killed.weights.read_bytes() == undisturbed.weights.read_bytes(), "weights differ"
    assert read_ledger(killed.ledger) == read_ledger(undisturbed.ledger), "ledgers differ"


def _resumed(ledger: Path, known: set[int]) -> int | None:
    """The step after which training went on in the first generation that was not known."""
    later = {number: step for number, step in begun_after(ledger).items() if number not in known}
    return later[min(later)] if later else None


@contextmanager
def _started(manifest: Path, workdir: Workdir) -> Iterator[subprocess.Popen[str]]:
    """The command, which is not left running; all that it starts ends with it."""
    workdir.ledger.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "pretrainctl", "local", manifest, "--workdir", workdir.path],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PRETRAIN_LEDGER_DIR": str(workdir.ledger)},
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _wait_for(
    kill: Kill, process: subprocess.Popen[str], workdir: Workdir, newest: NewestStep
) -> bool:
    """Whether the kill's moment came before the command ended."""
    reached = _condition(kill, process, workdir, newest)
    while process.poll() is None:
        if reached():
            return True
        time.sleep(POLL_SECONDS)
    return False


def _condition(
    kill: Kill, process: subprocess.Popen[str], workdir: Workdir, newest: NewestStep
) -> Callable[[], bool]:
    if kill.moment == "preprocessing":
        return lambda: bool(_processes(process, "preprocess"))
    if kill.moment == "evaluation":
        return lambda: (
            _finished_runs(workdir) >= kill.step and bool(_processes(process, "evaluate"))
        )
    if kill.moment == "training":
        return lambda: newest.look() >= kill.step and len(_processes(process, "train-worker")) > 1
    return lambda: (
        newest.look() >= kill.step
        and _save_in_progress(workdir)
        and bool(_processes(process, "train-worker"))
    )


def _save_in_progress(workdir: Workdir) -> bool:
    """Whether the newest step's directory has files and no COMMIT."""
    steps = sorted(workdir.storage.glob("checkpoints/*/step-*"))
    return bool(steps) and not any(steps[-1].rglob("COMMIT"))


def _finished_runs(workdir: Workdir) -> int:
    """Runs of fine-tuning that the evaluation has stored."""
    return len(list(workdir.storage.glob("evaluations/*/runs/*.json")))


def _processes(process: subprocess.Popen[str], stage: str) -> list[psutil.Process]:
    """The command's descendants that run `python -m pretrain_jobs <stage>`, not torchrun."""
    return [child for child in _descendants(process) if runs(child, stage)]


def runs(process: psutil.Process, stage: str) -> bool:
    """Whether a process is that stage's own, not torchrun."""
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    pairs = itertools.pairwise(words)
    return ("pretrain_jobs", stage) in pairs and not any("torch.distributed" in w for w in words)


def _descendants(process: subprocess.Popen[str]) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []


def _carry_out(kill: Kill, process: subprocess.Popen[str]) -> None:
    for target in _targets(kill.victim, process):
        with suppress(ProcessLookupError):
            os.kill(target, signal.SIGKILL)


def _targets(victim: Victim, process: subprocess.Popen[str]) -> list[int]:
    if victim == "the command":
        return [process.pid]
    if victim == "the whole tree":
        return [process.pid, *(child.pid for child in _descendants(process))]
    if victim == "the launcher":
        return [child.pid for child in _processes(process, "train")][:1]
    workers = [child.pid for child in _processes(process, "train-worker")]
    return workers[:1] if victim == "one rank" else workers


def main() -> None:
    """Run a sample twice, once killed ten times, and print what was done and found."""
    options = _parse()
    folder = options.workdir.resolve()
    runs = [Workdir(folder / name) for name in ("undisturbed", "killed")]
    for run in runs:
        shutil.rmtree(run.path, ignore_errors=True)
        shutil.rmtree(run.ledger, ignore_errors=True)
        shutil.copytree(options.data, run.storage)
    manifest = with_quick_restarts(options.manifest, folder / "job.yaml")
    max_steps = yaml.safe_load(manifest.read_text())["spec"]["training"]["maxSteps"]
    source = random.Random(options.seed)
    kills = seeded_kills(source, max_steps=max_steps, before=1, in_training=8, after=1)
    print("running the job undisturbed ...", flush=True)
    run_undisturbed(manifest, runs[0])
    print("running it again, killed ten times ...", flush=True)
    print(table(run_killed(manifest, runs[1], kills), ()))
    compare(runs[1], runs[0])
    steps = len({step for step, _ in read_ledger(runs[1].ledger)})
    print(f"weights byte-identical; {steps} steps, no sample repeated or skipped")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="storage with the corpus in it")
    parser.add_argument("--workdir", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
