"""The stage as a process of its own: memory, locale, imports, exit codes; about 25 s."""

from __future__ import annotations

import json
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pretrain_api.reports import TERMINATION_LOG_ENV, StageReport
from pretrain_api.spec.corpus import SourceSpec
from pretrain_testing.corpora import PreprocessJob, json_lines, wordpiece

HAN = "乌鲁木齐是城市中华人民共和国成立研究生命的起源很忙好坏一二三四五六七八九十"
TOKENIZER = wordpiece([*HAN, "，", "。"])
LIMIT_MIB = 300
GROWTH = 1.15
POLL_SECONDS = 0.01


def make_job(directory: Path, name: str, data: bytes) -> PreprocessJob:
    job = PreprocessJob(directory, sources=(SourceSpec(uri=f"corpus/{name}"),))
    job.write({name: data})
    job.lay_out(TOKENIZER)
    return job


def peak_mib(job: PreprocessJob) -> float:
    """The largest resident set of the process that prepares the whole job.

    Asked of the kernel while it runs: what `wait4` tells counts the parent's memory too.
    """
    process = job.start(0)
    peak = 0
    while process.poll() is None:
        peak = max(peak, high_water_kib(process.pid))
        time.sleep(POLL_SECONDS)
    assert process.returncode == 0, process.communicate()[1]
    process.communicate()
    return peak / 1024


def high_water_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) if found else 0


def documents(count: int) -> list[str]:
    choose = random.Random(3)
    return ["".join(choose.choices(HAN + "，。", k=700)) for _ in range(count)]


def lines(scale: int) -> bytes:
    return json_lines(documents(400)) * scale


def array(scale: int) -> bytes:
    records = [{"content": text, "text": text} for text in documents(400)]
    inner = json.dumps(records, ensure_ascii=False)[1:-1]
    return f"[{','.join([inner] * scale)}]".encode()


def tiny(scale: int) -> bytes:
    return json_lines(["好"]) * (5_000 * scale)


@pytest.mark.parametrize(
    ("name", "make"), [("a.jsonl", lines), ("a.json", array), ("b.jsonl", tiny)]
)
def test_memory_does_not_grow_with_the_input(tmp_path: Path, name: str, make: object) -> None:
    assert callable(make)
    small = peak_mib(make_job(tmp_path / "small", name, make(1)))
    large = peak_mib(make_job(tmp_path / "large", name, make(8)))

    assert large < LIMIT_MIB
    assert large < GROWTH * small


def test_the_locale_does_not_act(tmp_path: Path) -> None:
    text = "好人，😀。"
    contents = []
    for number, locale in enumerate(("C", "C.UTF-8")):
        job = PreprocessJob(tmp_path, dataset=f"dataset-{number}")
        job.write({"a.jsonl": json_lines([text]), "x.csv": f"text\n{text}\n".encode()})
        job.lay_out(TOKENIZER if number == 0 else None)
        job.run([0], LC_ALL=locale, PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
        contents.append(job.content())

    assert contents[0] == contents[1]


def test_preprocessing_imports_neither_torch_nor_transformers_nor_jieba(tmp_path: Path) -> None:
    code = (
        "import sys, pretrain_jobs.corpus.stage;"
        "print({'torch', 'transformers', 'jieba', 'pandas'} & set(sys.modules))"
    )

    command = [sys.executable, "-c", code]

    result = subprocess.run(command, check=True, capture_output=True, text=True)

    assert result.stdout.strip() == "set()"


def test_a_failure_is_one_clear_line_and_a_report(tmp_path: Path) -> None:
    job = PreprocessJob(tmp_path, corpus={"max_rejects": 0})
    job.write({"a.jsonl": json_lines(["好"]) + b'{"text": "x\n'})
    job.lay_out(TOKENIZER)
    report_path = tmp_path / "report.json"
    report_path.touch()

    process = job.start(0, **{TERMINATION_LOG_ENV: str(report_path)})
    _, errors = process.communicate()

    report = StageReport.model_validate_json(report_path.read_bytes())
    assert process.returncode == 65
    assert (report.stage, report.cause, report.retryable) == ("preprocess", "DataError", False)
    assert "a.jsonl, line 2" in report.message
    assert "Traceback" not in errors
    assert "a.jsonl, line 2" in errors.strip().splitlines()[-1]
