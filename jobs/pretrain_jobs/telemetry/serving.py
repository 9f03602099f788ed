"""Whether and as whom a stage's process serves its progress and metrics.

Nothing is served unless the environment names a port. prometheus-client is imported only then.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from pretrain_api.reports import PROGRESS_FILE_ENV, PROGRESS_PORT_ENV, StageName

_log = logging.getLogger(__name__)


@contextmanager
def served(
    stage: StageName, config_path: Path, environment: Mapping[str, str], *, index: int
) -> Iterator[None]:
    """Serve this process's progress and metrics until the block ends, if it is one that does.

    `index` is the pod's. A port that is taken is logged, and the block runs all the same.
    """
    port = serving_port(stage, environment)
    with ExitStack() as stack:
        if port is not None:
            labels = process_labels(stage, config_path, rank=environment.get("RANK", str(index)))
            file = environment.get(PROGRESS_FILE_ENV)
            _start(stack, port, labels=labels, progress=Path(file) if file else None)
        yield


def serving_port(stage: StageName, environment: Mapping[str, str]) -> int | None:
    """The port to serve at; None where another process of the pod serves, or none does.

    In training that is the first rank of a pod: the launcher and torchrun share its environment.
    """
    port = environment.get(PROGRESS_PORT_ENV, "")
    first = stage != "train" or environment.get("LOCAL_RANK") == "0"
    return int(port) if port.isdecimal() and first else None


def process_labels(stage: StageName, config_path: Path, *, rank: str) -> dict[str, str]:
    """The labels of a process's metrics; what an unreadable config cannot tell is empty."""
    config: Any = None
    with suppress(OSError, ValueError):
        config = json.loads(config_path.read_bytes())
    try:
        job, attempt = config["job"], str(config["attempt"])
        namespace, name = str(job["namespace"]), str(job["name"])
    except (KeyError, TypeError):
        namespace = name = attempt = ""
    return {"namespace": namespace, "job": name, "attempt": attempt, "stage": stage, "rank": rank}


def _start(
    stack: ExitStack, port: int, *, labels: Mapping[str, str], progress: Path | None
) -> None:
    from prometheus_client import CollectorRegistry

    from pretrain_jobs.telemetry.endpoint import endpoint
    from pretrain_jobs.telemetry.exposition import ProcessCollector

    registry = CollectorRegistry()
    registry.register(ProcessCollector(labels))
    try:
        stack.enter_context(endpoint(port, progress=lambda: _read(progress), registry=registry))
    except OSError as error:
        _log.warning("progress and metrics are not served at port %d: %s", port, error.strerror)


def _read(path: Path | None) -> bytes | None:
    """The progress file; None before it is there."""
    with suppress(FileNotFoundError):
        return path.read_bytes() if path else None
    return None
