"""The bed of this level, brought up once for the session, over what a killed start has left."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
from bed import processes
from bed.cluster import Bed
from bed.fixtures import (  # noqa: F401
    bed_for_session,
    kubectl,
    kubernetes_client,
    namespace,
    pytest_runtest_makereport,
)
from bed.lifecycle import is_up, prepare
from bed.paths import ROOT
from bed.profile import Profile, profile
from pretrain_testing.processes import wait_for


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    """The `full` profile, up."""
    full = profile("full")
    if not is_up(full):
        kill_a_start_half_way(full)
    with bed_for_session("full") as bed:
        yield bed


def kill_a_start_half_way(full: Profile) -> None:
    """Leave a bed with some processes, mounts, groups and a network, but no whole cluster."""
    prepare(full)
    start = subprocess.Popen(
        [sys.executable, "-m", "bed", "up"], cwd=ROOT / "tests", stdout=subprocess.DEVNULL
    )
    wait_for("a node's runtime", lambda: processes.running(full, "containerd-node-a"))
    start.kill()
    start.wait()
