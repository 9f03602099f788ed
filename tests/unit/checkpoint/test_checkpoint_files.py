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
from pretrain_jobs.checkpoint.snapshot import all_finite
from pretrain_jobs.errors import UserError


def test_a_file_is_hashed_as_it_lies_on_the_disk(tmp_path: Path) -> None:
    stored = write_file(tmp_path / "state.pt", {"weight": torch.arange(1000.0)})

    data = (tmp_path / "state.pt").read_bytes()
    assert (stored.size, stored.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert torch.equal(torch.load(tmp_path / "state.pt")["weight"], torch.arange(1000.0))


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


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_single_bad_value_anywhere_makes_a_state_not_finite(bad: float) -> None:
    values = torch.tensor([1.0, bad])
    state = {"a": [torch.ones(2), {"b": (torch.tensor([1, 2]), values)}], "n": 3}

    assert not all_finite(state)
    values[1] = 1.0
    assert all_finite(state)


@pytest.mark.parametrize("setting", ["nowhere:kill", "before_commit", "before_commit:kill:soon"])
def test_a_failpoint_that_does_not_exist_is_refused(setting: str) -> None:
    with pytest.raises(UserError, match="PRETRAIN_FAILPOINT"):
        Failpoints(setting)
