"""The container's command: start torchrun for this node and say how its ranks ended.

It imports neither torch nor anything that does: it must be up at once, and small, beside the
ranks. Training itself is `train.main`.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType

from pretrain_api.reports import Artifact, Cause, StageReport, StageResult
from pretrain_api.stages import TrainStageConfig
from pydantic import ValidationError

from pretrain_jobs.errors import HangError, InfrastructureError, StageError
from pretrain_jobs.process import load_config
from pretrain_jobs.train.artifacts import model_is_committed, require_dataset
from pretrain_jobs.train.goodput import extended
from pretrain_jobs.train.memory_kills import kills_by_memory
from pretrain_jobs.train.node import Node, agent_command, node_number, worker_environment
from pretrain_jobs.train.outcome import RankEnding, explain, explain_agent
from pretrain_jobs.train.process_age import STARTED_ENV, started
from pretrain_jobs.train.rendezvous import master_address, name_trouble, unreached, wait_for_master
from pretrain_jobs.train.watchdog import Watchdog

LOOK_SECONDS = 1.0
"""How often the launcher looks whether its ranks move."""

OTHERS_FIRST_SECONDS = 5.0

RENDEZVOUS_FAILED = 2
"""Exit code of the agent when the nodes did not meet."""

_log = logging.getLogger(__name__)


def main(config_path: Path) -> StageResult:
    """Run this node's share of the training to its end; the result is rank 0's node's to tell."""
    config = load_config(TrainStageConfig, config_path)
    number = node_number(os.environ, config.workers.replicas)
    if model_is_committed(config):
        _log.info("the model %s is committed already", config.model_fingerprint)
        return _cached(config)
    require_dataset(config)
    master = master_address(config.rendezvous, os.environ)
    if number > 0:
        wait_for_master(
            master,
            config.rendezvous.port,
            timeout_seconds=config.rendezvous.timeout_seconds,
        )
    with _scratch(config, number) as scratch:
        return _run(config, config_path, Node(number, master, scratch))


def _run(config: TrainStageConfig, config_path: Path, node: Node) -> StageResult:
    """Start the agent, pass SIGTERM on, and judge the endings."""
    killed_before = kills_by_memory()
    process = subprocess.Popen(
        agent_command(config, node, config_path, launcher_pid=os.getpid()),
        env={**worker_environment(config, node, os.environ), STARTED_ENV: str(started())},
        start_new_session=True,
    )
    watchdog = Watchdog(node.reports, config.hang_timeout_seconds)
    try:
        with _passing_sigterm_on(node, process) as stop:
            code = _wait(process, watchdog, stop)
    except HangError as hang:
        raise _told_before(hang, node) from None
    finally:
        process.kill()
    if code == RENDEZVOUS_FAILED:
        raise _unmet(config, node)
    endings = read_endings(node)
    out_of_memory = kills_by_memory() > killed_before
    error = explain(endings, stopped=stop.requested, out_of_memory=out_of_memory) or explain_agent(
        code, stopped=stop.requested, out_of_memory=out_of_memory
    )
    if error is not None:
        raise error
    return _result(endings, datetime.now(UTC))


def _result(endings: Sequence[RankEnding], now: datetime) -> StageResult:
    """What rank 0 has reported, with the time that its process took to end."""
    first = next((e.report for e in endings if e.rank == 0 and e.report), None)
    result = first.result if first and first.result else StageResult()
    if result.time_sheet is None:
        return result
    return result.model_copy(update={"time_sheet": extended(result.time_sheet, now)})


def _wait(process: subprocess.Popen[bytes], watchdog: Watchdog, stop: _Stop) -> int:
    """The agent's exit code; HangError when a rank does not move although nobody stops it.

    Ranks that can say where they are wait for others, as a rule. They are left alone a moment
    longer, so that the node of the rank that cannot tells first what holds all of them up.
    """
    looked = time.monotonic()
    while True:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(LOOK_SECONDS)
        before, looked = looked, time.monotonic()
        if not watchdog.look(looked - before) or stop.requested:
            continue
        error, standings = watchdog.explain()
        if all(standing.answers for standing in standings):
            with suppress(subprocess.TimeoutExpired):
                process.wait(OTHERS_FIRST_SECONDS)
        raise error


def _told_before(hang: HangError, node: Node) -> StageError:
    """What a rank has reported that others now wait for in vain; else the hang itself."""
    told = explain(read_endings(node), stopped=False, out_of_memory=False)
    return told if told is not None and told.cause is not Cause.INFRASTRUCTURE else hang


def read_endings(node: Node) -> list[RankEnding]:
    """How the ranks of this node ended, from their reports and from what the agent saw."""
    codes: dict[str, dict[str, float]] = {}
    with suppress(FileNotFoundError, ValueError):
        codes = json.loads(node.endings.read_bytes())
    reports = {report.rank: report for report in _reports(node.reports) if report.rank is not None}
    return [
        RankEnding(
            rank=rank,
            exit_code=int(codes.get(str(rank), {}).get("exitCode", 0)),
            time=float(codes.get(str(rank), {}).get("time", 0.0)),
            report=reports.get(rank),
        )
        for rank in sorted({*reports, *map(int, codes)})
    ]


def _reports(directory: Path) -> Iterator[StageReport]:
    for path in sorted(directory.glob("*.json")):
        try:
            yield StageReport.model_validate_json(path.read_bytes())
        except ValidationError:
            _log.warning("the report %s is damaged", path)


class _Stop:
    """Whether this node was asked to stop."""

    requested = False


@contextmanager
def _passing_sigterm_on(node: Node, process: subprocess.Popen[bytes]) -> Iterator[_Stop]:
    """Send SIGTERM to the ranks themselves, for torchrun would only wait for their end.

    Before a rank has told its process id there is nothing to save, and torchrun gets the signal.
    """
    stop = _Stop()

    def forward(_number: int, _frame: FrameType | None) -> None:
        stop.requested = True
        ranks = [int(path.read_text()) for path in node.reports.glob("*.pid")]
        for pid in ranks or [process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    previous = signal.signal(signal.SIGTERM, forward)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGTERM, previous)


@contextmanager
def _scratch(config: TrainStageConfig, number: int) -> Iterator[Path]:
    """The node's directory for temporary files; what a killed attempt left there goes first."""
    root = Path(tempfile.gettempdir()) / f"pretrain-{config.job.uid[:8]}-{number}"
    shutil.rmtree(root, ignore_errors=True)
    scratch = root / f"{config.attempt}-{os.getpid()}"
    (scratch / "ranks").mkdir(parents=True)
    try:
        yield scratch
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _cached(config: TrainStageConfig) -> StageResult:
    return StageResult(
        artifacts=[
            Artifact(
                stage="train",
                fingerprint=config.model_fingerprint,
                uri=config.model_uri,
                cached=True,
            )
        ]
    )


def _unmet(config: TrainStageConfig, node: Node) -> InfrastructureError:
    """Why the nodes did not meet; whichever node tells first, a name that fails is named."""
    port, seconds = config.rendezvous.port, config.rendezvous.timeout_seconds
    if trouble := name_trouble(node.master):
        return unreached(node.master, port, seconds, trouble)
    return InfrastructureError(
        f"the {config.workers.replicas} nodes did not meet at {node.master}:{port} within "
        f"{seconds} s; see torchrun's last lines in the log, and look at the pods that are missing"
    )
