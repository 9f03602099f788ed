"""Preprocessing jobs over forty documents of two Chinese sentences each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pretrain_api.reports import StageResult

from pretrain_testing.corpora import PreprocessJob, json_lines, wordpiece

WORDS = "乌鲁木齐是城市中华人民共和国成立研究生命的起源很忙好坏一二三四五六七八九十"
TEXTS = [f"研究生命的起源，{number}。乌鲁木齐是城市！" for number in range(40)]
TOKENIZER = wordpiece([*WORDS, "，", "。", "！", *(str(n) for n in range(100))])

Run = Callable[..., StageResult]
"""Runs one slice of a job: `run(job, index=0)`."""


def make_job(
    directory: Path, files: dict[str, bytes] | None = None, **options: Any
) -> PreprocessJob:
    """A job that is laid out, over the documents above or other files."""
    job = PreprocessJob(directory, **options)
    job.write(files if files is not None else {"a.jsonl": json_lines(TEXTS)})
    job.lay_out(TOKENIZER)
    return job
