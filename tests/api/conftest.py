"""The bed of this level, brought up once for the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bed.cluster import Bed
from bed.fixtures import (  # noqa: F401
    bed_for_session,
    kubectl,
    kubernetes_client,
    namespace,
    pytest_runtest_makereport,
)


@pytest.fixture(scope="session")
def bed() -> Iterator[Bed]:
    """The `api` profile, up."""
    with bed_for_session("api") as bed:
        yield bed
