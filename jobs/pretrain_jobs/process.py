"""The top of a stage's process: run it, then report how it ended.

The only place that catches every exception. An ending becomes an exit code, one line on stderr
and a `StageReport` in the termination message. Until then the stage's progress and metrics are
served, where the environment names a port. What a stage does is not known here.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pretrain_api.reports import (
    EXIT_CODES,
    TERMINATION_LOG_ENV,
    Cause,
    StageName,
    StageReport,
    StageResult,
)
from pretrain_api.skew import read_json
from pretrain_api.stages import StageConfig
from pydantic import ValidationError

from pretrain_jobs.errors import StageError, UserError
from pretrain_jobs.progress import ProgressReporter
from pretrain_jobs.sigterm import raised_on_sigterm
from pretrain_jobs.storage.local_files import is_full, translate
from pretrain_jobs.telemetry.serving import served
from pretrain_jobs.termination import encode_report

__all__ = ["ProgressReporter", "load_config", "run_stage", "run_tool"]

INDEX_ENV = "JOB_COMPLETION_INDEX"
"""Environment variable with the index of this pod in its Indexed Job."""

_DEFAULT_TERMINATION_LOG = Path("/dev/termination-log")
_CONFIG = TypeVar("_CONFIG", bound=StageConfig)
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Ending:
    """How a process ended."""

    cause: Cause
    message: str
    retryable: bool
    mendable: bool = False


def run_stage(
    stage: StageName,
    main: Callable[[Path], StageResult],
    config_path: Path,
    *,
    report_path: Path | None = None,
) -> int:
    """Run a stage's `main` and return the exit code of its process.

    The report goes to `report_path`, by default to $PRETRAIN_TERMINATION_LOG, or else to
    /dev/termination-log where a kubelet made one.
    """
    result: StageResult | None = None
    ending: _Ending | None = None
    index = _integer_from_environment(INDEX_ENV) or 0
    try:
        with raised_on_sigterm(), served(stage, config_path, os.environ, index=index):
            result = main(_readable(config_path))
    except BaseException as error:  # noqa: BLE001 - the process's top
        ending = _classify(error)
        result = _left_by(error)
        _announce(stage, ending, error)
    report = StageReport(
        stage=stage,
        index=index,
        rank=_integer_from_environment("RANK"),
        attempt=_attempt(config_path),
        cause=ending.cause if ending else None,
        message=ending.message if ending else "",
        retryable=ending.retryable if ending else True,
        mendable=ending.mendable if ending else False,
        result=result,
    )
    _write_report(report, report_path or _default_report_path())
    return EXIT_CODES[ending.cause] if ending else 0


def run_tool(name: str, main: Callable[[Sequence[str]], None], arguments: Sequence[str]) -> int:
    """Run a command that is no stage: the same exit codes and messages, but no report."""
    try:
        main(arguments)
    except SystemExit:
        raise
    except BaseException as error:  # noqa: BLE001 - the process's top
        ending = _classify(error)
        _announce(name, ending, error)
        return EXIT_CODES[ending.cause]
    return 0


def load_config(model: type[_CONFIG], path: Path) -> _CONFIG:
    """Read a stage's config; UserError names the file and each field that does not fit.

    Of fields that a newer operator wrote, those that the job does not ask for are left out.
    """
    try:
        config, unknown = read_json(model, path.read_bytes())
    except OSError as error:
        raise UserError(f"config {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise UserError(f"config {path} does not fit: {_fields(error)}") from error
    if asked := sorted(set(unknown).intersection(config.asked)):
        raise UserError(
            f"the job asks for {', '.join(asked)}, which this image's version does not know: "
            "use a newer image, or leave that out of the spec"
        )
    if unknown:
        _log.info("left out of the config, being of a newer version: %s", ", ".join(unknown))
    return config


def _readable(path: Path) -> Path:
    """The path itself, once it has proved to be a JSON file."""
    try:
        json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"config {path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"config {path} is not JSON: {error}") from error
    return path


def _classify(error: BaseException) -> _Ending:
    """Cause, message and retryability of whatever ended a process."""
    if isinstance(error, OSError) and is_full(error):
        error = translate(error, Path(error.filename or "a local file"), "writing")
    if isinstance(error, StageError):
        return _Ending(error.cause, str(error), error.retryable, error.mendable)
    if isinstance(error, ValidationError):
        return _Ending(Cause.USER_ERROR, f"{error.title} does not fit: {_fields(error)}", False)
    if _is_out_of_memory(error):
        message = "out of memory: raise the limit, or lower the micro-batch or the parallelism"
        return _Ending(Cause.OUT_OF_MEMORY, message, True)
    if isinstance(error, KeyboardInterrupt):
        return _Ending(Cause.PREEMPTED, "interrupted", True)
    return _Ending(Cause.UNKNOWN, f"{type(error).__name__}: {error}", True)


def _left_by(error: BaseException) -> StageResult | None:
    """What holds of a stage's work although it failed: its newest checkpoint."""
    checkpoint = error.checkpoint if isinstance(error, StageError) else None
    return StageResult(checkpoint=checkpoint) if checkpoint is not None else None


def _is_out_of_memory(error: BaseException) -> bool:
    """Torch's own error is told by its name, since torch is not imported here."""
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _fields(error: ValidationError) -> str:
    lines = [
        f"{'.'.join(str(part) for part in item['loc']) or 'the whole'}: {item['msg']}"
        for item in error.errors(include_url=False, include_input=False)
    ]
    more = f"; and {len(lines) - 10} more" if len(lines) > 10 else ""
    return "; ".join(lines[:10]) + more


def _announce(name: str, ending: _Ending, error: BaseException) -> None:
    """The traceback of what nobody foresaw into the log, then one line for a person."""
    foreseen = isinstance(error, StageError | ValidationError | KeyboardInterrupt)
    if ending.cause is Cause.UNKNOWN or not foreseen:
        _log.error("%s failed", name, exc_info=error)
    line = " ".join(ending.message.split())
    print(f"pretrain_jobs {name}: {ending.cause}: {line}", file=sys.stderr, flush=True)  # noqa: T201


def _integer_from_environment(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


def _attempt(config_path: Path) -> int:
    """The attempt's number from the config, 0 if the config cannot tell."""
    try:
        attempt = json.loads(config_path.read_bytes())["attempt"]
    except (OSError, ValueError, KeyError, TypeError):
        return 0
    return attempt if isinstance(attempt, int) else 0


def _default_report_path() -> Path | None:
    path = os.environ.get(TERMINATION_LOG_ENV)
    if path:
        return Path(path)
    return _DEFAULT_TERMINATION_LOG if _DEFAULT_TERMINATION_LOG.is_file() else None


def _write_report(report: StageReport, path: Path | None) -> None:
    """Write in place: the kubelet's file is a mount of its own and cannot be renamed over."""
    if path is None:
        return
    try:
        path.write_bytes(encode_report(report))
    except OSError as error:
        _log.warning("the report cannot be written to %s: %s", path, error.strerror)
