"""The ledger: a line per step, whole or not at all."""

import json
from pathlib import Path

import numpy as np
from pretrain_jobs.dataset.order import Cursor
from pretrain_jobs.train.data import Step
from pretrain_jobs.train.ledger import Ledger


def step_with(*samples: int) -> Step:
    cursor = Cursor("dataset", seed=1, samples_per_epoch=10)
    return Step((), cursor, np.zeros(len(samples), np.int64), np.array(samples, np.int64))


def test_each_step_is_a_line_with_its_samples_in_order(tmp_path: Path) -> None:
    with Ledger(tmp_path, rank=1, generation=3) as ledger:
        ledger.write(7, step_with(5, 2))
        ledger.write(8, step_with(9))

    lines = (tmp_path / "generation-000003-rank-00001.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"step": 7, "rank": 1, "samples": [5, 2], "epochs": [0, 0]},
        {"step": 8, "rank": 1, "samples": [9], "epochs": [0]},
    ]


def test_a_step_is_in_the_file_before_the_next_one_begins(tmp_path: Path) -> None:
    ledger = Ledger.from_environment({"PRETRAIN_LEDGER_DIR": str(tmp_path)}, rank=0, generation=1)
    ledger.write(1, step_with(1))

    assert (tmp_path / "generation-000001-rank-00000.jsonl").read_text().endswith("\n")


def test_without_the_variable_nothing_is_written(tmp_path: Path) -> None:
    with Ledger.from_environment({}, rank=0, generation=1) as ledger:
        ledger.write(1, step_with(1))

    assert list(tmp_path.iterdir()) == []
