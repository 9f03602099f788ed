"""Whose bed `down` ends: this checkout's, and nobody else's unless told to."""

from __future__ import annotations

import secrets
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bed import processes
from bed.errors import BedError
from bed.lifecycle import down
from bed.profile import LOOPBACK, Profile

Running = Callable[[Profile], "subprocess.Popen[bytes]"]


def bed_of(state: Path, name: str) -> Profile:
    """A bed of one name in one checkout; none of its ports is ever opened."""
    return Profile(
        name=name,
        state=state,
        has_nodes=False,
        address=LOOPBACK,
        api_port=1,
        etcd_port=2,
        controller_manager_port=3,
        scheduler_port=4,
    )


@pytest.fixture
def name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A name of one test alone: the beds of a name are one machine's, whoever runs tests there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return f"owned-{secrets.token_hex(8)}"


@pytest.fixture
def mine(tmp_path: Path, name: str) -> Profile:
    return bed_of(tmp_path / "mine/build/bed", name)


@pytest.fixture
def theirs(tmp_path: Path, name: str) -> Profile:
    return bed_of(tmp_path / "theirs/build/bed", name)


@pytest.fixture
def running() -> Iterator[Running]:
    """Runs something as a part of a bed, whose state folder is made."""
    started: list[subprocess.Popen[bytes]] = []

    def run(bed: Profile) -> subprocess.Popen[bytes]:
        bed.state.mkdir(parents=True)
        started.append(subprocess.Popen(["sleep", "600"], env=processes.marks_of(bed)))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()


def test_a_bed_of_another_checkout_is_not_ended_and_its_owner_is_named(
    mine: Profile, theirs: Profile, running: Running
):
    process = running(theirs)

    with pytest.raises(BedError, match=rf"is that of {theirs.state}, .* FORCE=1"):
        down(mine)

    assert process.poll() is None
    assert theirs.state.is_dir()


def test_it_is_when_that_is_asked_for(mine: Profile, theirs: Profile, running: Running):
    process = running(theirs)

    down(mine, force=True)

    assert process.wait() < 0


def test_what_a_deleted_checkout_has_left_is_ended(
    mine: Profile, theirs: Profile, running: Running
):
    process = running(theirs)
    theirs.state.rmdir()

    down(mine)

    assert process.wait() < 0


def test_ones_own_bed_is_ended(mine: Profile, running: Running):
    process = running(mine)

    down(mine)

    assert process.wait() < 0
