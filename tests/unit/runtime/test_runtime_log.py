"""One line a record, for machines or for people."""

from __future__ import annotations

import json
import logging

import pytest
from pretrain_operator.log import JsonFormatter, PlainFormatter, job_logger


class Kept(logging.Handler):
    """Keeps what it formats."""

    def __init__(self, formatter: logging.Formatter) -> None:
        super().__init__()
        self.setFormatter(formatter)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def logged(formatter: logging.Formatter) -> tuple[logging.Logger, list[str]]:
    logger = logging.Logger("test")
    handler = Kept(formatter)
    logger.addHandler(handler)
    return logger, handler.lines


def test_json_lines_name_the_job():
    logger, lines = logged(JsonFormatter())
    job_logger(logger, ("team", "x")).warning("stage %s", "train")
    entry = json.loads(lines[0])
    assert (entry["namespace"], entry["job"]) == ("team", "x")
    assert (entry["level"], entry["message"]) == ("warning", "stage train")


def test_an_exception_stays_on_its_line():
    logger, lines = logged(JsonFormatter())
    with pytest.raises(ValueError, match="broken") as caught:
        raise ValueError("broken")
    logger.error("failed", exc_info=caught.value)
    assert "\n" not in lines[0]
    assert "ValueError: broken" in json.loads(lines[0])["exception"]


def test_plain_lines_begin_with_time_and_level():
    logger, lines = logged(PlainFormatter())
    job_logger(logger, ("team", "x")).info("begun")
    assert lines[0].split(" ", 1)[1] == "INFO    team/x: begun"
