"""How the operator logs: one line a record, as JSON or for people.

What belongs to a job is logged through `job_logger`, which adds the job's namespace and name. No
request's headers or bodies are logged anywhere, so that no token or secret is.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any, Literal

import orjson

LogFormat = Literal["json", "plain"]
NOISY = ("kopf", "aiohttp", "asyncio", "kubernetes")
"""Loggers that tell at level info what only a developer wants to know."""

_NAMESPACE = "namespace"
_JOB = "job"


class JobLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs about one job."""

    def process(
        self, msg: str, kwargs: MutableMapping[str, Any]
    ) -> tuple[str, MutableMapping[str, Any]]:
        """Add the job to a record's fields."""
        return msg, {**kwargs, "extra": self.extra}


def job_logger(logger: logging.Logger, key: tuple[str, str]) -> JobLogger:
    """A logger for the job with a namespace and name."""
    return JobLogger(logger, {_NAMESPACE: key[0], _JOB: key[1]})


def configure(*, level: str, form: LogFormat) -> None:
    """Send all records of this process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else PlainFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    if level != "debug":
        for name in NOISY:
            logging.getLogger(name).setLevel(logging.WARNING)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, the job, the exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        entry: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {
            name: getattr(record, name) for name in (_NAMESPACE, _JOB) if name in vars(record)
        }
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        return orjson.dumps(entry, default=str).decode()


class PlainFormatter(logging.Formatter):
    """`TIME LEVEL namespace/job: message`."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        job = vars(record).get(_JOB)
        subject = f"{vars(record)[_NAMESPACE]}/{job}: " if job else ""
        line = f"{_time(record)} {record.levelname:<7} {subject}{record.getMessage()}"
        if record.exc_info:
            line = f"{line}\n{self.formatException(record.exc_info)}"
        return line


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z"
