"""A rank's files on the local disk, and the generators that they keep."""

import hashlib
import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from pretrain_jobs.checkpoint.failpoints import Failpoints
from pretrain_jobs.checkpoint.files import write_file
from pretrain_jobs.checkpoint.random_state import capture_random_state, restore_random_state
from pretrain_jobs.errors import UserError


def test_a_file_is_hashed_as_it_lies_on_the_disk(tmp_path: Path) -> None:
    stored = write_file(tmp_path / "trainer.json", b'{"step": 1}', memoryview(b""))

    data = (tmp_path / "trainer.json").read_bytes()
    assert (stored.name, stored.size) == ("trainer.json", len(data))
    assert stored.sha256 == hashlib.sha256(data).hexdigest()


def test_all_generators_go_on_where_they_were_captured() -> None:
    def draw() -> tuple[object, ...]:
        return (
            random.random(),
            random.gauss(0, 1),
            float(np.random.normal()),
            torch.rand(3).tolist(),
            torch.randn(1).item(),
        )

    draw()
    state = json.loads(json.dumps(capture_random_state()))
    expected = [draw() for _ in range(3)]
    draw()

    restore_random_state(state)

    assert [draw() for _ in range(3)] == expected


@pytest.mark.parametrize(
    "setting",
    ["nowhere:kill", "before_commit", "before_commit:kill:soon", "after_copy:kill-writer"],
)
def test_a_failpoint_that_does_not_exist_is_refused(setting: str) -> None:
    with pytest.raises(UserError, match="PRETRAIN_FAILPOINT"):
        Failpoints(setting)
