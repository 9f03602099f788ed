"""A bed killed half-way, or asked for twice: what `up` and `down` make of it.

Takes about half a minute: two control planes start, beside the one of this level.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from bed import processes
from bed.errors import BedError
from bed.lifecycle import down, is_up, up
from bed.profile import LOOPBACK, Profile
from pretrain_testing.processes import processes_of, wait_for


def spare(state: Path) -> Profile:
    """A profile beside the two that others may have up."""
    return Profile(
        name="spare",
        state=state,
        has_nodes=False,
        address=LOOPBACK,
        api_port=16543,
        etcd_port=12479,
        controller_manager_port=12357,
        scheduler_port=12359,
    )


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Profile]:
    bed = spare(tmp_path / "bed")
    yield bed
    down(bed)


def bring_up_in_a_process(bed: Profile) -> subprocess.Popen[bytes]:
    words = {name: getattr(bed, name) for name in Profile.__dataclass_fields__}
    program = (
        "from pathlib import PosixPath\n"
        "from bed.lifecycle import up\n"
        "from bed.profile import Profile\n"
        f"up(Profile(**{words!r}))\n"
    )
    path = os.pathsep.join(filter(None, sys.path))
    return subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path})


def test_a_bed_whose_start_was_killed_comes_up_and_leaves_nothing_behind(bed: Profile):
    half_way = bring_up_in_a_process(bed)
    wait_for("etcd", lambda: processes.running(bed, "etcd"))
    half_way.send_signal(signal.SIGKILL)
    half_way.wait()
    assert not is_up(bed)

    assert up(bed)

    assert is_up(bed)
    down(bed)
    assert processes_of(bed.state) == []
    assert list(bed.state.iterdir()) == []


def test_a_bed_that_is_up_is_left_as_it_is(bed: Profile):
    up(bed)
    before = processes.running(bed, "etcd")

    assert not up(bed)

    assert processes.running(bed, "etcd") == before


def test_a_bed_with_a_dead_part_is_brought_up_anew(bed: Profile):
    up(bed)
    processes.stop(bed, "kube-controller-manager")
    assert not is_up(bed)

    assert up(bed)

    assert is_up(bed)


def test_what_failed_tests_left_outlives_the_bed(bed: Profile):
    kept = bed.state / "failures" / "test_x"
    kept.mkdir(parents=True)

    down(bed)

    assert list(bed.state.iterdir()) == [kept.parent]


def test_a_bed_of_the_same_name_elsewhere_is_named_and_not_touched(bed: Profile, tmp_path: Path):
    up(bed)

    with pytest.raises(BedError, match=str(bed.state)):
        up(spare(tmp_path / "elsewhere"))

    assert is_up(bed)
