"""The bed of this level, brought up once for the session, and the CRD in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from bed.cluster import Bed
from bed.fixtures import (  # noqa: F401
    bed_for_session,
    kubectl,
    kubernetes_client,
    namespace,
    pytest_runtest_makereport,
)
from pretrain_testing.stored_jobs import CRD_FILE, wait_until_served


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    """The `api` profile, up."""
    with bed_for_session("api") as bed:
        yield bed


@pytest.fixture(scope="session")
def crd(bed: Bed, kubernetes_client: Any) -> None:  # noqa: F811
    """The CRD, applied as it is now; other levels' tests may have applied it before."""
    bed.kubectl("apply", "--server-side", "--force-conflicts", f"--filename={CRD_FILE}")
    wait_until_served(kubernetes_client)


@pytest.fixture
def simulate_nodes(bed: Bed) -> Iterator[Callable[[int], None]]:
    """Plays so many nodes; afterwards no scheduler looks at the pods that other tests play."""
    yield bed.simulate_nodes
    for part in ("kube-scheduler", "kwok"):
        bed.stop(part)
