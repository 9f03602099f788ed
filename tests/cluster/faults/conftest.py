"""The faulty jobs, run once for all tests of this folder."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from bed.cluster import Bed
from bed.paths import ROOT
from pretrain_testing.cluster_watch import watching
from pretrain_testing.fault_ends import FAILS, HANG
from pretrain_testing.fault_rows import rows_of
from pretrain_testing.fault_run import Seen, run_faults
from pretrain_testing.fault_waits import WAITS
from pretrain_testing.fault_world import World, faulty_world


@pytest.fixture(scope="session")
def world(bed: Bed) -> Iterator[World]:
    """Where they run."""
    with faulty_world(bed) as world:
        yield world


@pytest.fixture(scope="session")
def seen(bed: Bed, world: World) -> dict[str, Seen]:
    """What was seen of each; build/failures.json has it for docs/failures.md."""
    with watching(bed, world.namespaces) as watched:
        found = run_faults(world, watched)
    rows = rows_of([found[fault.name] for fault in (*WAITS, *FAILS, HANG)], world)
    (ROOT / "build" / "failures.json").write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return found
